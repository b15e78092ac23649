package cli

import (
	"fmt"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// advice says whether anything happened, what to do about the cause, and how to
// repeat the call, if it may be. An error without a command id is of a read, or
// of something that is no operation: there nothing can have happened.
func advice(e *fault.Error, about subject) string {
	if s := finishedAlready(e); s != "" {
		return s
	}
	s := again(e, step(e, about))
	if e.RetryAfterMillis > 0 {
		s += fmt.Sprintf(", not before %d ms have passed", e.RetryAfterMillis)
	}
	switch {
	case e.Code == fault.UnknownWriteOutcome:
		return "it may have happened; " + s + "; the same id never does it twice"
	case e.Reason == "receipt_horizon":
		return "nothing happened this time, and nobody knows about an earlier one; " + s
	case e.CommandID != "":
		return "nothing happened; " + s
	}
	return s
}

// finishedAlready is for a delivery that was finished before: by this caller,
// whose first answer may have been lost, or by another.
func finishedAlready(e *fault.Error) string {
	group := e.Code == fault.NotFound && e.Reason == "unknown_delivery"
	queue := e.Code == fault.StaleLease && e.Facts["state"] == string(api.StateAcked)
	if group || queue {
		return "nothing is left to do: the delivery is finished already, and this changed nothing"
	}
	return ""
}

// again says how the call may be repeated after the step.
func again(e *fault.Error, step string) string {
	then := ""
	if step != "" {
		then = step + ", then "
	}
	switch e.Retry {
	case fault.RetrySameID:
		s := then + "repeat it unchanged"
		if e.CommandID != "" {
			s += " with --command-id " + e.CommandID
		}
		return s
	case fault.RetryNewID:
		if e.CommandID == "" {
			return then + "run it again later"
		}
		return then + "run it again later as a new command" + fresh(e)
	case fault.RetryAfterChange:
		if step == "" {
			then = "change what is wrong, then "
		}
		return then + "run it again" + fresh(e)
	default:
		if step == "" {
			return "repeating it cannot help"
		}
		return "repeating it cannot help: " + step
	}
}

// fresh says that a refusal is kept under the command's id.
func fresh(e *fault.Error) string {
	if !e.Recorded || e.CommandID == "" {
		return ""
	}
	return " with a new --command-id, or without one"
}

// step is what to do about the cause, "" when there is nothing.
func step(e *fault.Error, about subject) string {
	if s := e.Facts["nextAction"]; s != "" {
		return s
	}
	if s := stepOfGroup(e, about); s != "" {
		return s
	}
	if s := stepOfCluster(e, about); s != "" {
		return s
	}
	if s := stepOfReason(e.Reason, about); s != "" {
		return s
	}
	if s := stepOfBackup(e.Reason, about); s != "" {
		return s
	}
	switch e.Code {
	case fault.Validation:
		return "correct what is named above"
	case fault.Unauthenticated:
		return "give a valid key in KEYLOAD_API_KEY or --api-key"
	case fault.PermissionDenied:
		if e.Reason == "policy_epoch" {
			return "receive again when the lease has ended"
		}
		return "have an administrator allow it (" + about.command("principals", "configure") + ")"
	case fault.NotFound:
		return "check the names and --partition"
	case fault.Conflict, fault.RevisionConflict:
		return "look at what is stored now and decide anew"
	case fault.DuplicateEventID:
		return "the same event is stored already"
	case fault.StaleLease, fault.LeaseExpired:
		return "receive again; this token is worth nothing any more"
	case fault.TokenInvalidated:
		return "get a new token; this one holds no more"
	case fault.CursorExpired:
		return "begin again without --cursor"
	case fault.HistoryUnavailable:
		return "begin at the first position that is kept" + about.firstKept(e)
	case fault.BudgetExceeded:
		return "ask for less: a smaller --limit, or conditions on an indexed field"
	case fault.DispatchPaused:
		return "wait until delivery goes on"
	case fault.ResourceExhausted:
		if e.Retry != fault.RetrySameID {
			return "make room, or raise the limit that is named above"
		}
	case fault.ClockUncertain:
		return "have the server's clock set right"
	case fault.Corruption:
		return "restore the last good backup into an empty directory, and keep the damaged one"
	case fault.FormatUnsupported:
		return "use a newer keyload; this one leaves the store as it is"
	case fault.RecoveryRequired:
		return "remove the cause, for example make room on the disk, start the server again"
	}
	return ""
}

// firstKept is the flag that begins there.
func (a *subject) firstKept(e *fault.Error) string {
	r, stream := a.request.(*api.StreamsReadRequest)
	if name := flagFor("/afterPosition", a.flags); name != "" && e.Facts["afterPosition"] != "" && !(stream && r.Direction == api.Backward) {
		return ": " + name + " " + e.Facts["afterPosition"]
	}
	return ""
}

// stepOfGroup is for what stands in the way of a command on a group, or is put
// right by one.
func stepOfGroup(e *fault.Error, about subject) string {
	generation := about.atGeneration(e.Facts["generation"])
	switch e.Reason {
	case "unknown_group":
		return "create it, without --expected-generation: " + about.onGroup("configure")
	case "group_exists":
		return "keep it, or pause it to replace its definition: " + about.onGroup("pause", generation...)
	case "not_paused":
		return "pause it: " + about.onGroup("pause", generation...)
	case "group_generation":
		return "see where it stands (" + about.onGroup("status") + ") and decide anew"
	case "group_paused", "group_failed", "group_restored":
		return "let it go on: " + about.onGroup("resume", generation...)
	case "retention_pin":
		return "see how far the group named above is (" + about.onGroupOf("status", []string{"TOPIC", e.Facts["holder"]}) + "), and let it go on, seek it forward or delete it"
	case "purged":
		if e.Facts["checkpoint"] != "" {
			return "move it: " + about.onGroup("seek", append([]string{"beginning"}, generation...)...)
		}
	}
	return ""
}

// stepOfReason is for causes of which more is known than their code.
func stepOfReason(reason string, about subject) string {
	switch reason {
	case "unreachable":
		return "see that a server runs there (keyload serve --dir DIR), or give --url, or --dir to work without one"
	case "listen":
		return "choose another address (keyload serve --help: --listen, --tls-cert, --tls-key, --insecure)"
	case "no_store":
		return "give the directory of a store, or make one (" + typedName("").command("init", "--dir", about.directory()) + ")"
	case "store_in_use":
		return "use the server that has it open, or stop it"
	case "store_exists":
		return "give another directory, or serve this one (" + typedName("").command("serve", "--dir", about.directory()) + "), or make another key: " + about.command("api-keys", "create", "admin")
	case "directory_not_empty":
		return "give another directory"
	case "unknown_resource":
		return "create it (keyload create --help), or check its name and --partition"
	case "command_id_reused":
		return "keep this id for the request it was made for"
	case "restored", "intake_refused":
		return "have an administrator look (" + about.command("admin", "restore-status") + ") and let the store go on: " + about.command("admin", "dispatch", "running")
	case "dispatch_paused":
		return "have an administrator let the store go on: " + about.command("admin", "dispatch", "running")
	case "earlier_history":
		return "look at what is stored, and use a new id for new work"
	case "receipt_horizon":
		return "look at what is stored now and decide anew"
	case "file_exists":
		return "give another directory, or move the file away if nothing uses it"
	case "other_cluster":
		return "give the directory of that cluster, or leave --name out"
	}
	return ""
}

// stepOfCluster is for what the nodes of a cluster and their leaderships stand in the
// way of.
func stepOfCluster(e *fault.Error, about subject) string {
	status := about.site.command("cluster", "status")
	look := "see which nodes can be reached (" + status + ")"
	switch e.Reason {
	case "no_cluster":
		return "start the store with the settings of a cluster first (keyload cluster --help)"
	case "cluster_member":
		return "ask the nodes of that cluster (--url), without --dir"
	case "node_known":
		return "give a number that no node of this cluster ever had (" + status + " lists those in use)"
	case "node_joined":
		return "if it lost its disk, put a new node with a new number in its place: keyload cluster replace --help"
	case "node_removed", "node_not_joined":
		return "start a new node with a new number and an empty directory (keyload cluster add --help)"
	case "unknown_node", "unknown_shard":
		return "see which there are: " + status
	case "last_node":
		return "add another node first, and wait until it votes: keyload cluster add --help"
	case "too_many_nodes":
		return "remove one first: keyload cluster remove --help"
	case "not_joined":
		return "start that node, and wait until it has joined: " + status
	case "draining":
		return "let it lead again (keyload cluster drain --help), or choose another node"
	case "majority_lost":
		return look + ", and start them; put a new node in the place of one that is lost: keyload cluster replace --help"
	case "no_leader":
		return look + ", and start so many that most of them are up"
	case "not_leader", "leader_lost", "node_lost":
		return "wait a moment for another leader"
	case "unreachable":
		if e.Detail == nodeUnreached {
			return look
		}
	}
	return ""
}

// nodeUnreached is the detail of the reason unreachable where it is one node that
// cannot reach another; a client that cannot reach its server has the same reason.
const nodeUnreached = "the node that has to do it cannot be reached from the one that was asked; nothing happened"

// stepOfBackup is for what stands in the way of a backup or a restore.
func stepOfBackup(reason string, about subject) string {
	switch reason {
	case "backup_running", "check_running":
		return "wait until it is done"
	case "backup_exists":
		return "give another name, or a directory: then it gets a name of its own"
	case "backup_unconfirmed":
		return "verify it (keyload backup verify FROM)"
	case "no_backup":
		return "check the location (keyload backup list DIR)"
	case "no_place":
		return "make it first"
	case "other_backup":
		return "see that the location and the id belong together (keyload backup inspect FROM)"
	case "unsound_backup":
		return "use another backup, and keep this one; with --no-check it is restored as it is"
	case "damaged_backup", "not_a_backup":
		return "use another backup, and keep this one"
	case "no_room":
		return "make room on the disk"
	case "newer_backup":
		return "use a newer keyload"
	case "backup_incomplete":
		return "see the server's log"
	case "administrator_only":
		return "use the key of an administrator"
	case "directory_unusable":
		return "give another directory, or make the one above it, or have it made yours"
	case "foreign_files":
		return "move away what is named above, or give another directory"
	case "inside_store":
		return "give a place that is in no store's directory"
	case "restore_unconfirmed":
		return "see that the disk is well, then what is there: " + typedName("").command("check", about.directory())
	case "init_unfinished":
		return "make it again (" + typedName("").command("init", "--dir", about.directory()) + ")"
	case "restore_unfinished":
		return "restore into it again (" + typedName("").command("restore", "FROM", about.directory()) + "), or remove the directory"
	}
	return ""
}
