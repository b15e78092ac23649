// Package op says what an operation is: the functions behind a descriptor, the
// context they run in, and the frozen registry of all of them.
//
// Owns: Ctx (evaluation of a command), View (evaluation of a query), Door (what
// the engine does before and after), the erased handlers, the registry, the pages of
// listings, the pins that hold a source back, the audit of a shard.
//
// May: use api, codec, fault, kv, table, token.
//
// May not: know any resource; start anything; keep state outside the values it
// hands out.
//
// Start reading at: handler.go, then ctx.go and registry.go.
package op
