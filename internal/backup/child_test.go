package backup_test

func restoringChild() bool { return false }
