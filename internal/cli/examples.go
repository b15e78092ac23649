package cli

// example is a command line for an operation that a person can change into
// their own. Every operation has one, and each is a valid request.
func example(operation string) string {
	switch operation {
	case "commands.commit":
		return `keyload commands commit --partition default/main/main/customer-42 --mutations '[
  {"kind": "putDocument", "collection": "orders", "id": "o-1", "document": {"total": 40}},
  {"kind": "enqueue", "queue": "emails", "message": {"payload": {"order": "o-1"}}}]'`
	case "commands.outcome":
		return `keyload commands outcome --command-id 0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e`
	case "documents.get":
		return `keyload documents get --collection orders --id o-1`
	case "documents.list":
		return `keyload documents list --collection orders --prefix o- --limit 20`
	case "documents.query":
		return `keyload documents query --collection orders --where '{"path": "/total", "op": "ge", "value": 30}'`
	case "streams.read":
		return `keyload streams read --stream-set history --stream-id o-1 --direction backward --limit 5`
	case "events.read":
		return `keyload events read --topic orders-placed --after-position 100 --wait-millis 20s`
	case "queues.receive":
		return `keyload queues receive --queue emails --max-messages 10 --lease-seconds 2m --wait-millis 20s`
	case "queues.complete":
		return `keyload queues complete --queue emails --items '{"token": "TOKEN", "action": "nack", "failure": "mail server is down"}'`
	case "queues.process":
		return `keyload queues process --queue emails --token TOKEN --handler-scope mailer --effects '{"kind": "putDocument", "collection": "sent", "id": "o-1", "document": {}}'`
	case "queues.inspect":
		return `keyload queues inspect --queue emails --message-id m-1 --include-payload`
	case "queues.list":
		return `keyload queues list --queue emails --state deadLettered`
	case "queues.status":
		return `keyload queues status --queue emails`
	case "queues.explain":
		return `keyload queues explain --queue emails --message-id m-1`
	case "queues.redrive":
		return `keyload queues redrive --queue emails --message-id m-1 --not-before +10m`
	case "resources.configure":
		return `keyload resources configure --name emails --kind queue --queue.max-attempts 3 --queue.retry.base-millis 5s`
	case "resources.get":
		return `keyload resources get --name emails`
	case "resources.list":
		return `keyload resources list --kind queue`
	case "resources.delete":
		return `keyload resources delete --name emails --purge`
	case "principals.configure":
		return `keyload principals configure --id mailer --roles worker --policy-epoch 1`
	case "principals.get":
		return `keyload principals get --id mailer`
	case "principals.list":
		return `keyload principals list`
	case "api-keys.create":
		return `keyload api-keys create --principal-id mailer --expires-at +90d`
	case "api-keys.revoke":
		return `keyload api-keys revoke --key-id KEY-ID`
	case "api-keys.list":
		return `keyload api-keys list --principal-id mailer`
	case "admin.status":
		return `keyload admin status --json`
	}
	return "keyload " + operation
}
