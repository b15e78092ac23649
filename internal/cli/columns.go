package cli

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
)

// columnsOf names the fields that a table shows of structures with more of them
// than fit on a line of 100 characters; nil is all fields.
func columnsOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[api.Resource]():
		return []string{"name", "kind", "domain", "version", "paused", "deleting", "updatedAt"}
	case reflect.TypeFor[api.MessageInfo]():
		return []string{"messageId", "state", "attempts", "notBefore", "leaseUntil", "lastFailure"}
	case reflect.TypeFor[api.GroupInfo]():
		return []string{"group", "checkpoint", "tail", "lag", "paused", "deadLetters", "pinnedBytes"}
	case reflect.TypeFor[api.PausedGroup]():
		return []string{"group", "generation", "checkpoint", "tail", "failureCode"}
	case reflect.TypeFor[api.EarlierHistory]():
		return []string{"incarnation", "endedAt"}
	case reflect.TypeFor[api.WindowRow]():
		return []string{"from", "to", "state", "attempts", "leaseUntil", "notBefore", "lastFailure"}
	case reflect.TypeFor[api.DeadLetter]():
		return []string{"position", "state", "version", "attempts", "failures", "leaseLosses", "lastFailure"}
	case reflect.TypeFor[api.Principal]():
		return []string{"id", "roles", "administrator", "expiresAt", "revoked", "policyEpoch"}
	case reflect.TypeFor[api.APIKey]():
		return []string{"keyId", "principalId", "createdAt", "expiresAt", "revoked"}
	case reflect.TypeFor[api.ShardStatus]():
		return []string{"shard", "catalog", "position", "durablePosition", "loggedTime", "failure"}
	}
	return nil
}

// table writes a list of structures with a column for every field that was
// chosen; where none were, for every one that is set in at least one of them.
// Where single ones were refused, each has its number.
func (p *printer) table(b *bytes.Buffer, indent string, list reflect.Value) {
	t := list.Type().Elem()
	wanted := columnsOf(t)
	header := table.Row{}
	rows := make([]table.Row, list.Len())
	add := func(name string, column []string) {
		header = append(header, name)
		for j := range rows {
			rows[j] = append(rows[j], column[j])
		}
	}
	if len(refusals(list).refused) > 0 {
		numbers := make([]string, list.Len())
		for j := range numbers {
			numbers[j] = strconv.Itoa(j + 1)
		}
		add("item", numbers)
	}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "-" || wanted != nil && !slices.Contains(wanted, name) {
			continue
		}
		column, empty := make([]string, list.Len()), true
		for j := range column {
			f := list.Index(j).Field(i)
			empty = empty && f.IsZero()
			if !f.IsZero() || !strings.Contains(options, "omit") || wanted != nil && saysNone(f) {
				column[j] = p.inCell(f)
			}
		}
		if !empty || wanted != nil {
			add(name, column)
		}
	}
	w := table.NewWriter()
	w.SetStyle(plainStyle())
	w.AppendHeader(header)
	w.AppendRows(rows)
	for line := range strings.SplitSeq(w.Render(), "\n") {
		b.WriteString(indent + strings.TrimRight(line, " ") + "\n")
	}
}

// saysNone says that the zero of a field is an answer, such as a checkpoint of 0,
// and not the lack of one.
func saysNone(f reflect.Value) bool {
	return f.Kind() == reflect.Bool || (f.CanInt() || f.CanUint()) && f.Type() != reflect.TypeFor[api.Time]()
}

// items are what became of the single items of a response: how many there are,
// and the error of each that was refused, by its place.
type items struct {
	all     int
	refused map[int]*fault.Error
}

// itemsOf looks for a list whose elements hold an error of their own.
func itemsOf(response any) items {
	v := reflect.ValueOf(response).Elem()
	for i := range v.NumField() {
		list := v.Field(i)
		if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		if x := refusals(list); len(x.refused) > 0 {
			return x
		}
	}
	return items{}
}

func refusals(list reflect.Value) items {
	x := items{all: list.Len(), refused: map[int]*fault.Error{}}
	f, ok := list.Type().Elem().FieldByName("Error")
	if !ok || f.Type != reflect.TypeFor[*fault.Error]() {
		return x
	}
	for i := range x.all {
		if e := list.Index(i).FieldByIndex(f.Index).Interface().(*fault.Error); e != nil {
			x.refused[i] = e
		}
	}
	return x
}

// first is the refusal of the first item that was refused; nil when none was.
func (x items) first() *fault.Error {
	for i := range x.all {
		if e := x.refused[i]; e != nil {
			return e
		}
	}
	return nil
}

// summary says how many were refused.
func (x items) summary() string {
	if n := len(x.refused); n > 1 {
		return fmt.Sprintf("%d of %d items were refused", n, x.all)
	}
	return fmt.Sprintf("1 of %d items was refused", x.all)
}

// advice says what to do about the refused items, once for those that need the
// same.
func (x items) advice(about subject) string {
	var order []string
	places := map[string][]string{}
	for i := range x.all {
		e := x.refused[i]
		if e == nil {
			continue
		}
		text := advice(e, about)
		if places[text] == nil {
			order = append(order, text)
		}
		places[text] = append(places[text], strconv.Itoa(i+1))
	}
	var b strings.Builder
	for _, text := range order {
		fmt.Fprintf(&b, "next for item %s: %s\n", strings.Join(places[text], ", "), text)
	}
	return b.String()
}

// receiptLine sums up where and when a command was committed, and what of it
// was not.
func receiptLine(r api.Receipt, x items) string {
	if n := len(x.refused); n > 0 && n == x.all {
		return "nothing changed: " + x.summary() + "\n"
	}
	if r.Token.Position == 0 {
		return "" // nothing was written
	}
	where := ""
	if p := r.Token.Partition; p != (api.PartitionRef{}) {
		where = " in " + p.String()
	}
	committed := fmt.Sprintf("committed %s at position %d%s (%s), command %s\n", r.CommittedAt, r.Token.Position, where, r.Durability, r.CommandID)
	if len(x.refused) == 0 {
		return committed
	}
	return x.summary() + " and changed nothing; the rest is " + committed
}
