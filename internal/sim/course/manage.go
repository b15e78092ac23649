package course

import "github.com/keyload/keyload/api"

// policies changes resources, principals and keys.
func policies() []Step {
	worker := func(epoch uint64, roles ...api.Role) api.Principal {
		return api.Principal{ID: "worker", Roles: roles, PolicyEpoch: epoch}
	}
	configure := func(name string, req api.ResourcesConfigureRequest) Step {
		return is(name, api.ResourcesConfigure.Operation, func() api.CommandRequest { own := req; return &own })
	}
	queue := func(version uint64, attempts int64, paused bool) api.ResourcesConfigureRequest {
		return api.ResourcesConfigureRequest{
			Name: "jobs", Kind: api.KindQueue, ExpectedVersion: version, Paused: paused, Queue: &api.QueuePolicy{MaxAttempts: attempts},
		}
	}
	return append([]Step{
		is("make worker", api.PrincipalsConfigure.Operation, func() api.CommandRequest {
			return &api.PrincipalsConfigureRequest{Principal: worker(1, api.RoleWorker)}
		}),
		keeping(is("make a key", api.APIKeysCreate.Operation, func() api.CommandRequest {
			return &api.APIKeysCreateRequest{PrincipalID: "worker"}
		}), func(m *Memory, r *api.APIKeysCreateResponse) { m.Texts["key"] = r.KeyID }),
		is("make another key", api.APIKeysCreate.Operation, func() api.CommandRequest {
			return &api.APIKeysCreateRequest{PrincipalID: "worker", ExpiresAt: api.Time(Began + 400*day)}
		}),
		is("a key of nobody", api.APIKeysCreate.Operation, func() api.CommandRequest {
			return &api.APIKeysCreateRequest{PrincipalID: "nobody"}
		}).refusedFor("unknown_principal"),
		is("change worker", api.PrincipalsConfigure.Operation, func() api.CommandRequest {
			return &api.PrincipalsConfigureRequest{Principal: worker(2, api.RoleWorker, api.RoleReader)}
		}),
		is("pause dispatch", api.AdminDispatch.Operation, func() api.CommandRequest {
			return &api.AdminDispatchRequest{State: api.DispatchPaused, RefuseIntake: true, Reason: "to see it"}
		}),
		is("resume dispatch", api.AdminDispatch.Operation, func() api.CommandRequest {
			return &api.AdminDispatchRequest{State: api.DispatchRunning}
		}),
		command("revoke the key", api.APIKeysRevoke.Operation, func(m *Memory) api.CommandRequest {
			return &api.APIKeysRevokeRequest{KeyID: m.Texts["key"]}
		}),
		configure("pause jobs", queue(1, 4, true)),
		take("receive while paused", 1).refusedFor("queue_paused"),
		configure("go on", queue(2, 4, false)),
		configure("by a version that is past", queue(2, 4, true)).refusedFor("version"),
		take("receive what is left", 1),
		configure("lower the attempts", queue(3, 1, false)),
	}, later("messages without attempts are put aside", second)...)
}

// removals deletes resources, with and without their content.
func removals() []Step {
	remove := func(name string, purge bool) Step {
		return is("delete "+name, api.ResourcesDelete.Operation, func() api.CommandRequest {
			return &api.ResourcesDeleteRequest{Name: name, Purge: purge}
		})
	}
	steps := []Step{
		remove("old", false).refusedFor("not_empty"),
		remove("old", true),
		remove("past", true),
		remove("spare", true),
	}
	steps = append(steps, later("their rows go", second)...)
	return append(steps,
		is("configure old anew", api.ResourcesConfigure.Operation, func() api.CommandRequest {
			return &api.ResourcesConfigureRequest{Name: "old", Kind: api.KindQueue}
		}),
		remove("old", false),
		remove("old", false).refusedFor("unknown_resource"),
		flush(),
	)
}

// ages lets pass what is kept for a time only.
func ages() []Step {
	steps := []Step{
		is("brief keeps less", api.ResourcesConfigure.Operation, func() api.CommandRequest {
			return &api.ResourcesConfigureRequest{Name: "brief", Kind: api.KindTopic, ExpectedVersion: 1, Source: &api.SourcePolicy{MaxAgeSeconds: 60}}
		}),
	}
	steps = append(steps, later("two minutes pass: events of brief are too old", 2*minute)...)
	steps = append(steps, later("a day passes: ids of purged events and finished messages go", day+2*hour)...)
	steps = append(steps, later("fifteen days pass: receipts go", 15*day)...)
	steps = append(steps, take("receive what is left of jobs", 10), reopen())
	steps = append(steps, later("thirty more pass: tombstones and inbox records go", 30*day)...)
	return append(steps, compact(), commit("the last", func(*Memory) []api.Mutation {
		return []api.Mutation{count("the last"), enqueue("last", "")}
	}), look("at the end"))
}
