package cli

// example is a command line for an operation that a person can change into
// their own. Every operation has one, and each is a valid request.
func example(operation string) string {
	switch operation {
	case "commands.commit":
		return `keyload commands commit --partition default/main/main/customer-42 --mutations '[
  {"kind": "putDocument", "collection": "orders", "id": "o-1", "document": {"total": 40}},
  {"kind": "enqueue", "queue": "emails", "message": {"payload": {"order": "o-1"}}}]'`
	case "commands.inbox":
		return `keyload commands inbox payments evt-1001 ledger --effects '{"kind": "putDocument", "collection": "paid", "id": "o-1", "document": {"total": 40}}'`
	case "commands.outcome":
		return `keyload commands outcome 0190b6a0-5c1e-7c3a-9d5e-2f1b8a6c4d3e`
	case "documents.get":
		return `keyload documents get orders o-1`
	case "documents.list":
		return `keyload documents list orders --prefix o- --limit 20`
	case "documents.query":
		return `keyload documents query orders --where '{"path": "/total", "op": "ge", "value": 30}'`
	case "streams.read":
		return `keyload streams read history o-1 --direction backward --limit 5`
	case "events.read":
		return `keyload events read orders-placed --after-position 100 --wait-millis 20s`
	case "queues.receive":
		return `keyload queues receive emails --max-messages 10 --lease-seconds 2m --wait-millis 20s`
	case "queues.receive-across-lanes":
		return `keyload queues receive-across-lanes --requests '[{"lane": {"queue": "urgent"}, "maxMessages": 8}, {"lane": {"queue": "emails"}}]'`
	case "queues.complete":
		return `keyload queues complete emails --items '{"token": "TOKEN", "action": "nack", "failure": "mail server is down"}'`
	case "queues.process":
		return `keyload queues process emails TOKEN mailer --effects '{"kind": "putDocument", "collection": "sent", "id": "o-1", "document": {}}'`
	case "queues.inspect":
		return `keyload queues inspect emails m-1 --include-payload`
	case "queues.list":
		return `keyload queues list emails --state deadLettered`
	case "queues.status":
		return `keyload queues status emails`
	case "queues.explain":
		return `keyload queues explain emails m-1`
	case "queues.redrive":
		return `keyload queues redrive emails m-1 --not-before +10m`
	case "resources.configure":
		return `keyload resources configure emails queue --queue.max-attempts 3 --queue.retry.base-millis 5s`
	case "resources.get":
		return `keyload resources get emails`
	case "resources.list":
		return `keyload resources list --kind queue`
	case "resources.delete":
		return `keyload resources delete emails --purge`
	case "principals.configure":
		return `keyload principals configure mailer --roles worker --policy-epoch 1`
	case "principals.get":
		return `keyload principals get mailer`
	case "principals.list":
		return `keyload principals list`
	case "api-keys.create":
		return `keyload api-keys create mailer --expires-at +90d`
	case "api-keys.revoke":
		return `keyload api-keys revoke KEY-ID`
	case "api-keys.list":
		return `keyload api-keys list --principal-id mailer`
	}
	for _, area := range []func(string) string{adminExample, clusterExample} {
		if s := area(operation); s != "" {
			return s
		}
	}
	return groupExample(operation)
}

// adminExample is example for the operations on the store as a whole.
func adminExample(operation string) string {
	switch operation {
	case "admin.status":
		return `keyload admin status --json`
	case "admin.check":
		return `keyload admin check --shard 3`
	case "admin.dispatch":
		return `keyload admin dispatch paused --reason maintenance`
	case "admin.restore-status":
		return `keyload admin restore-status`
	}
	return ""
}

// clusterExample is example for the operations on the nodes of a cluster.
func clusterExample(operation string) string {
	switch operation {
	case "cluster.add":
		return `keyload cluster add 4 node4.example:7700`
	case "cluster.remove":
		return `keyload cluster remove 2`
	case "cluster.replace":
		return `keyload cluster replace 2 4 node4.example:7700`
	case "cluster.drain":
		return `keyload cluster drain 2`
	case "cluster.transfer":
		return `keyload cluster transfer 1 3`
	case "cluster.status":
		return `keyload cluster status`
	}
	return ""
}

// groupExample is example for the operations on subscription groups.
func groupExample(operation string) string {
	switch operation {
	case "subscriptions.configure":
		return `keyload subscriptions configure orders-placed billing --event-types 'OrderPlaced,Order*' --max-attempts 3 --retry.base-millis 5s --dead-letter.max-events 1000`
	case "subscriptions.receive":
		return `keyload subscriptions receive orders-placed billing --max-events 10 --lease-seconds 2m --wait-millis 20s`
	case "subscriptions.complete":
		return `keyload subscriptions complete orders-placed billing --items '{"token": "TOKEN", "action": "ack"}'`
	case "subscriptions.process":
		return `keyload subscriptions process orders-placed billing TOKEN biller --effects '{"kind": "putDocument", "collection": "bills", "id": "o-1", "document": {}}'`
	case "subscriptions.seek":
		return `keyload subscriptions seek orders-placed billing time --time=-1h --expected-generation 1`
	case "subscriptions.pause":
		return `keyload subscriptions pause orders-placed billing --expected-generation 1`
	case "subscriptions.resume":
		return `keyload subscriptions resume orders-placed billing --expected-generation 1`
	case "subscriptions.skip":
		return `keyload subscriptions skip orders-placed billing 'its order was withdrawn' --position 17 --expected-generation 1`
	case "subscriptions.delete":
		return `keyload subscriptions delete orders-placed billing --confirm 16`
	case "subscriptions.status":
		return `keyload subscriptions status orders-placed billing`
	case "subscriptions.explain":
		return `keyload subscriptions explain orders-placed billing --position 17`
	case "subscriptions.list":
		return `keyload subscriptions list orders-placed`
	case "subscriptions.deadletters.list":
		return `keyload subscriptions deadletters list orders-placed billing`
	case "subscriptions.deadletters.redrive":
		return `keyload subscriptions deadletters redrive orders-placed billing --position 17`
	case "subscriptions.deadletters.discard":
		return `keyload subscriptions deadletters discard orders-placed billing --position 17`
	}
	return ""
}
