package cli

import (
	"fmt"
	"strings"

	"github.com/keyload/keyload/api"
)

type createCmd struct {
	Kind     string   `arg:"" help:"collection, stream-set, topic or queue"`
	Name     string   `arg:"" help:"its name"`
	Tenant   nonEmpty `placeholder:"NAME" help:"tenant it belongs to (default default)"`
	Database nonEmpty `placeholder:"NAME" help:"database it belongs to (default main)"`
	Domain   nonEmpty `placeholder:"NAME" help:"transaction domain: the resources that may commit together (default main)"`
	Index    []string `placeholder:"POINTER" sep:"none" help:"of a collection: a field to find documents by, as a JSON pointer such as /customer; commas join the fields of one index"`
	Attempts *string  `placeholder:"N" help:"of a queue: claims before a message becomes a dead letter (default 5)"`
}

// Help is the example.
func (*createCmd) Help() string {
	return "Every policy can be set with \"keyload resources configure\". For example:\n\n" +
		"    keyload create collection orders --index /customer\n    keyload create queue emails --attempts 3"
}

// Run configures the resource.
func (c *createCmd) Run(s *session) error {
	request := &api.ResourcesConfigureRequest{
		Tenant: string(c.Tenant), Database: string(c.Database), Domain: string(c.Domain), Name: c.Name, Kind: api.ResourceKind(c.Kind),
	}
	if c.Kind == "stream-set" {
		request.Kind = api.KindStreamSet
	}
	if len(c.Index) > 0 {
		request.Collection = &api.CollectionPolicy{Indexes: indexes(c.Index)}
	}
	s.flags = []flag{
		{name: "index", pointer: "/collection"}, {name: "attempts", pointer: "/queue"},
		{name: "tenant", pointer: "/tenant"}, {name: "database", pointer: "/database"}, {name: "domain", pointer: "/domain"},
	}
	attempts := short{name: "attempts", pointer: "/queue/maxAttempts", text: c.Attempts}
	if err := s.fill(api.ResourcesConfigure.Operation, request, attempts); err != nil {
		return err
	}
	response, err := call(s, api.ResourcesConfigure, request)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.showJSON(response)
	}
	what := "was there already, the same"
	if response.Created {
		what = "created"
	}
	_, err = fmt.Fprintf(s.streams.Out, "%s %s: %s (version %d)\n", c.Kind, c.Name, what, response.Resource.Version)
	return err
}

// indexes names each index after its fields.
func indexes(texts []string) []api.IndexDefinition {
	out := make([]api.IndexDefinition, len(texts))
	for i, t := range texts {
		paths := strings.Split(t, ",")
		name := strings.ReplaceAll(strings.Trim(strings.Join(paths, ""), "/"), "/", "-")
		out[i] = api.IndexDefinition{Name: name, Paths: paths}
	}
	return out
}

type getCmd struct {
	Collection string `arg:"" help:"name of the collection"`
	ID         string `arg:"" help:"id of the document"`
	within
}

// Help is the example.
func (*getCmd) Help() string { return "For example:\n\n    keyload get orders o-1" }

// Run reads the document.
func (c *getCmd) Run(s *session) error {
	p, err := c.ref()
	if err != nil {
		return err
	}
	response, err := call(s, api.DocumentsGet, &api.DocumentsGetRequest{Partition: p, Collection: c.Collection, ID: c.ID})
	if err != nil {
		return err
	}
	return s.show(response)
}
