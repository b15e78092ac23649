package mcpgw

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/keyload/keyload/api"
)

//go:embed quickstart.md
var quickstart string

// The resources.
const (
	quickstartURI = "keyload://quickstart"
	catalogURI    = "keyload://catalog"
	// catalogTemplate is the catalog of another database, groupTemplate the status of a
	// subscription group.
	catalogTemplate = "keyload://catalog/{tenant}/{database}"
	groupTemplate   = "keyload://group/{tenant}/{database}/{domain}/{key}/{topic}/{group}"
)

func (s *Server) addResources() {
	s.mcp.AddResource(&mcp.Resource{
		URI: quickstartURI, Name: "quickstart", Title: "Quick start for agents", MIMEType: "text/markdown",
		Description: "How to work with the store: partitions, command ids, leases, errors, with calls to copy.",
	}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return contents(r.Params.URI, "text/markdown", quickstart), nil
	})
	s.mcp.AddResource(&mcp.Resource{
		URI: catalogURI, Name: "catalog", Title: "Catalog", MIMEType: "application/json",
		Description: "The collections, stream sets, topics and queues of the tenant default and its database main.",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return s.ask(ctx, r, api.ResourcesList.Operation, map[string]any{})
	})
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: catalogTemplate, Name: "catalog-of", Title: "Catalog of a database", MIMEType: "application/json",
		Description: "The collections, stream sets, topics and queues of a database.",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		p, err := parts(r.Params.URI, "keyload://catalog/", 2)
		if err != nil {
			return nil, err
		}
		return s.ask(ctx, r, api.ResourcesList.Operation, map[string]any{"tenant": p[0], "database": p[1]})
	})
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: groupTemplate, Name: "group", Title: "Status of a group", MIMEType: "application/json",
		Description: "Where a subscription group of a topic stands: checkpoint, gaps, leases, lag, and why it does not deliver.",
	}, func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		p, err := parts(r.Params.URI, "keyload://group/", 6)
		if err != nil {
			return nil, err
		}
		return s.ask(ctx, r, api.SubscriptionsStatus.Operation, map[string]any{"group": map[string]any{
			"group": p[5], "source": map[string]any{
				"resource": p[4], "kind": api.SourceTopic,
				"partition": api.PartitionRef{Tenant: p[0], Database: p[1], Domain: p[2], Key: p[3]},
			},
		}})
	})
}

// parts are the segments of a resource's URI, unescaped.
func parts(uri, prefix string, n int) ([]string, error) {
	all := strings.Split(strings.TrimPrefix(uri, prefix), "/")
	if len(all) != n {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	for i := range all {
		var err error
		if all[i], err = url.PathUnescape(all[i]); err != nil {
			return nil, mcp.ResourceNotFoundError(uri)
		}
	}
	return all, nil
}

// ask reads a resource by a query. An error of the query is the text of the protocol's.
func (s *Server) ask(ctx context.Context, r *mcp.ReadResourceRequest, o *api.Operation, request any) (*mcp.ReadResourceResult, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	var header http.Header
	if r.Extra != nil {
		header = r.Extra.Header
	}
	status, answer := s.send(ctx, header, o.Path(), body)
	if status != http.StatusOK {
		return nil, errors.New(string(answer))
	}
	return contents(r.Params.URI, "application/json", string(answer)), nil
}

func contents(uri, mediaType, text string) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mediaType, Text: text}}}
}
