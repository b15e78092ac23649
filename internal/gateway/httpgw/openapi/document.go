package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/apischema"
)

// Version is the version of the OpenAPI specification.
const Version = "3.1.1"

// object is one JSON object of the document; maps are written in the order of
// their keys, so equal descriptors give equal bytes.
type object = map[string]any

const refPrefix = "#/components/schemas/"

const (
	jsonType    = "application/json"
	cborType    = "application/cbor"
	problemType = "application/problem+json"
)

// Document is the OpenAPI document of the operations, in JSON. The further
// paths are those of the server that are no operations.
func Document(ops []*api.Operation, version string) ([]byte, error) {
	s := apischema.NewSet(refPrefix)
	s.Closed = true
	requests := make([]*apischema.Schema, len(ops))
	for i, o := range ops {
		requests[i] = s.Of(o.Request)
	}
	s.Closed = false // a newer server may answer fields that a client does not know
	paths := serverPaths(s)
	for i, o := range ops {
		paths[o.Path()] = object{"post": operation(o, requests[i], s.Of(o.Response))}
	}
	s.Named["Problem"] = problem(s)
	return json.MarshalIndent(object{
		"openapi": Version,
		"info": object{
			"title": "KeyLoad", "version": version, "description": about,
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []object{{"url": "/", "description": "this server"}},
		"security": []object{{"apiKey": []string{}}},
		"tags":     tags(ops),
		"paths":    paths,
		"components": object{
			"schemas":   s.Named,
			"responses": problemResponses(),
			"securitySchemes": object{"apiKey": object{
				"type": "http", "scheme": "bearer", "description": "An API key, kl_<id>_<secret>.",
			}},
		},
	}, "", " ")
}

const about = "One atomic store for documents, event streams, topics and queues.\n\n" +
	"Every operation is a POST with one JSON object, or one CBOR map whose keys are the numbers under x-cbor-key. " +
	"Unknown fields are refused. Lengths of texts count bytes of UTF-8. A write has a command id: repeating it with " +
	"the same content answers the stored result and does nothing again, so a lost reply is settled by the same request."

func tags(ops []*api.Operation) []object {
	var names []string
	for _, o := range ops {
		if !slices.Contains(names, o.Area()) {
			names = append(names, o.Area())
		}
	}
	out := make([]object, len(names))
	for i, n := range names {
		out[i] = object{"name": n}
	}
	return out
}

// operation is one operation of the registry.
func operation(o *api.Operation, request, response *apischema.Schema) object {
	about := o.Doc
	if o.Capability != "" {
		about += "\n\nNeeds the capability " + string(o.Capability) + "."
	}
	out := object{
		"operationId": o.Name,
		"tags":        []string{o.Area()},
		"summary":     o.Summary,
		"description": about,
		"requestBody": object{"required": true, "content": bodies(request)},
		"responses":   responses(response),
		"x-keyload": object{
			"number": o.Number, "command": o.Kind == api.Command, "composite": o.Kind == api.Composite, "destructive": o.Destructive, "capability": o.Capability,
		},
	}
	if o.Writes() {
		out["parameters"] = []object{{
			"name": "Idempotency-Key", "in": "header", "required": false,
			"description": "The command id, where the body has none. If both are given they must be equal.",
			"schema":      &apischema.Schema{Type: "string", Format: "uuid"},
		}}
	}
	return out
}

func bodies(s *apischema.Schema) object {
	return object{jsonType: object{"schema": s}, cborType: object{"schema": s}}
}

func responses(s *apischema.Schema) object {
	out := object{"200": object{"description": "It was done.", "content": bodies(s)}}
	for status := range problems() {
		out[status] = object{"$ref": "#/components/responses/Problem" + status}
	}
	return out
}

// problems lists the codes of each status.
func problems() map[string][]fault.Code {
	out := map[string][]fault.Code{}
	for _, c := range fault.Codes() {
		status := strconv.Itoa(c.Status())
		out[status] = append(out[status], c)
	}
	return out
}

func problemResponses() object {
	out := object{}
	for status, codes := range problems() {
		var text strings.Builder
		for _, c := range codes {
			fmt.Fprintf(&text, "%s: %s. ", c, c.Title())
		}
		out["Problem"+status] = object{
			"description": strings.TrimSpace(text.String()),
			"headers": object{"Retry-After": object{
				"description": "Seconds to wait before a retry, where the error says so.", "schema": &apischema.Schema{Type: "integer"},
			}},
			"content": object{
				problemType: object{"schema": &apischema.Schema{Ref: refPrefix + "Problem"}},
				cborType:    object{"schema": &apischema.Schema{Ref: refPrefix + "Error"}},
			},
		}
	}
	return out
}

// problem is the error in the form of RFC 9457.
func problem(s *apischema.Set) *apischema.Schema {
	e := s.Struct(reflect.TypeFor[fault.Error]())
	e.Properties.Get("code").Enum = texts(fault.Codes())
	e.Properties.Get("retry").Enum = texts([]fault.Retry{
		fault.RetrySameID, fault.RetryNewID, fault.RetryAfterChange, fault.RetryNever,
	})
	p := &apischema.Schema{Type: "object", Description: "An error (RFC 9457). Compare code and reason, never texts."}
	p.Properties = apischema.Properties{
		{Name: "type", Schema: &apischema.Schema{Type: "string", Description: "urn:keyload:error: followed by the code"}},
		{Name: "title", Schema: &apischema.Schema{Type: "string", Description: "short text, the same for every error of the code"}},
		{Name: "status", Schema: &apischema.Schema{Type: "integer", Description: "HTTP status"}},
	}
	for _, f := range e.Properties {
		plain := *f.Schema
		plain.CBORKey = 0
		p.Properties = append(p.Properties, apischema.Property{Name: f.Name, Schema: &plain})
	}
	p.Required = append([]string{"type", "title", "status"}, e.Required...)
	return p
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
