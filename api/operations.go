package api

// Operations lists every operation in the order of their numbers. Adding an
// operation is one file and one line here.
func Operations() []*Operation {
	return []*Operation{
		CommandsCommit.Operation,
		CommandsOutcome.Operation,
		DocumentsGet.Operation,
		DocumentsList.Operation,
		DocumentsQuery.Operation,
		StreamsRead.Operation,
		EventsRead.Operation,
		QueuesReceive.Operation,
		QueuesComplete.Operation,
		QueuesProcess.Operation,
		QueuesInspect.Operation,
		QueuesList.Operation,
		QueuesStatus.Operation,
		QueuesExplain.Operation,
		QueuesRedrive.Operation,
		ResourcesConfigure.Operation,
		ResourcesGet.Operation,
		ResourcesList.Operation,
		ResourcesDelete.Operation,
		PrincipalsConfigure.Operation,
		PrincipalsGet.Operation,
		PrincipalsList.Operation,
		APIKeysCreate.Operation,
		APIKeysRevoke.Operation,
		APIKeysList.Operation,
		AdminStatus.Operation,
	}
}
