package api

// BackupPath is where a server streams a backup of its store to an administrator,
// by POST without a body. It is no operation: its answer is a file.
const BackupPath = "/v1/admin/backup"

// BackupIDTrailer is the trailer with the id of a backup that was sent as a whole.
// Without it the answer is not complete.
const BackupIDTrailer = "Keyload-Backup-Id"
