package openapi

import (
	"reflect"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/apischema"
)

// serverPaths are the paths that are no operations of the registry.
func serverPaths(s *apischema.Set) object {
	plain := func(summary, mediaType string, open bool, more object) object {
		o := object{
			"tags": []string{"server"}, "summary": summary,
			"responses": object{"200": object{"description": "The answer.", "content": object{mediaType: object{}}}},
		}
		if open {
			o["security"] = []object{}
		}
		for k, v := range more {
			o[k] = v
		}
		return object{"get": o}
	}
	backup := plain(backupSummary, "application/zstd", false, object{
		"description": backupText,
		"responses": object{
			"200": object{
				"description": "The backup. It is complete only if the answer ended as it must, with the trailer " + api.BackupIDTrailer + ".",
				"content":     object{"application/zstd": object{}},
			},
		},
	})
	return object{
		api.BackupPath:    object{"post": backup["get"]},
		"/livez":          plain("Whether the process runs", jsonType, true, nil),
		"/readyz":         plain("Whether the server accepts work; 503 with the reason when it does not", jsonType, true, nil),
		"/metrics":        plain("Measurements in the Prometheus text format", "text/plain", true, nil),
		"/openapi.json":   plain("This document", jsonType, true, nil),
		"/docs":           plain("This document for people", "text/html", true, nil),
		"/v1/events/tail": plain(tailSummary, "text/event-stream", false, object{"parameters": tailParameters(s)}),
		"/v1/session": plain("Open a session: many calls in flight over one connection", "application/octet-stream", false, object{
			"responses": object{
				"101": object{"description": "The connection carries frames from now on."},
				"426": object{"description": "The request was no upgrade to keyload-session/1."},
			},
		}),
	}
}

const backupSummary = "Download a backup of the whole store"

const backupText = "Administrators only: a backup holds the data of every tenant and the hashes of every key. Nothing is sent in the " +
	"request. One backup is made at a time; another one is a Conflict. The answer begins once every row was read."

const tailSummary = "Follow a topic or stream: one server-sent event per stored event, resumed with Last-Event-ID"

// tailParameters are the fields of a read of events that a tail takes.
func tailParameters(s *apischema.Set) []object {
	source := s.Struct(reflect.TypeFor[api.SourceRef]())
	read := s.Struct(reflect.TypeFor[api.EventsReadRequest]())
	out := []object{{
		"name": "partition", "in": "query", "description": "tenant/database/domain/key; absent parts are default/main/main/main",
		"schema": &apischema.Schema{Type: "string"},
	}}
	add := func(of *apischema.Schema, names ...string) {
		for _, n := range names {
			p := *of.Properties.Get(n)
			p.CBORKey = 0
			about := p.Description
			p.Description = ""
			out = append(out, object{"name": n, "in": "query", "required": n == "resource", "description": about, "schema": &p})
		}
	}
	add(source, "resource", "kind", "streamId", "generation")
	add(read, "afterPosition", "cursor")
	return append(out, object{
		"name": "Last-Event-ID", "in": "header", "description": "id of the last event that was seen; continues after it",
		"schema": &apischema.Schema{Type: "string"},
	})
}
