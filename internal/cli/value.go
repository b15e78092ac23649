package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/internal/wire"
)

// A reader turns the texts of the command line into values.
type reader struct {
	stdin io.Reader
	now   time.Time
	read  bool // standard input was read
}

// set writes the texts given for a flag into its place in the request.
func (r *reader) set(f *flag, request reflect.Value, texts []string) error {
	place := settle(request, f.index)
	last := texts[len(texts)-1]
	var err error
	switch f.shape {
	case shapeText:
		err = setText(f, place, last)
	case shapeNumber:
		err = setNumber(f, place, last)
	case shapeSwitch:
		place.SetBool(last == "true")
	case shapeOff:
		place.SetBool(last != "true")
	case shapeTime:
		err = r.setTime(place, last)
	case shapePartition:
		var p api.PartitionRef
		if p, err = api.ParsePartition(last); err == nil {
			place.Set(reflect.ValueOf(p))
		}
	case shapeList:
		setList(place, texts)
	case shapeObject:
		err = r.setObject(place, last)
	case shapeMap:
		err = r.setMap(place, last)
	case shapeJSON:
		var v api.JSON
		if v, err = r.json(last); err == nil {
			place.SetBytes(v)
		}
	case shapeObjects:
		err = r.setObjects(place, texts)
	case shapeBytes:
		var b []byte
		if b, err = r.content(last); err == nil {
			place.SetBytes(b)
		}
	}
	if err == nil && f.source != "" {
		kind := append(append([]int(nil), f.index[:len(f.index)-1]...), kindField)
		settle(request, kind).SetString(string(f.source))
	}
	return err
}

// kindField is the place of the kind within api.SourceRef.
var kindField = func() int {
	f, ok := reflect.TypeFor[api.SourceRef]().FieldByName("Kind")
	if !ok {
		panic("cli: api.SourceRef has no Kind")
	}
	return f.Index[0]
}()

// settle follows the path, making the structures that pointers on it lack.
func settle(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

// setText refuses an empty name or choice, which would count as absent.
func setText(f *flag, place reflect.Value, text string) error {
	if text == "" && (f.tag.Get("format") != "" || f.tag.Get("enum") != "") {
		return errEmpty
	}
	place.SetString(text)
	return nil
}

// setNumber reads an integer, or a length of time in the unit of the name.
func setNumber(f *flag, place reflect.Value, text string) error {
	if place.Kind() == reflect.Pointer {
		place.Set(reflect.New(place.Type().Elem()))
		place = place.Elem()
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if unit := f.unit(); err != nil && unit != "" {
		n, err = lengthIn(unit, text)
	}
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("must be at most %d", int64(math.MaxInt64))
	case err != nil && f.unit() != "":
		return fmt.Errorf("must be a whole number, or a length of time such as 90s, 5m or 2h")
	case err != nil:
		return errors.New("must be a whole number")
	case n < 0:
		return errors.New("must not be negative")
	case n == 0 && f.tag.Get("minimum") != "" && f.tag.Get("minimum") != "0":
		// A zero would count as absent and take the default.
		return fmt.Errorf("must be at least %s", f.tag.Get("minimum"))
	}
	if place.CanUint() {
		place.SetUint(uint64(n))
	} else {
		place.SetInt(n)
	}
	return nil
}

// lengthIn reads a length of time in whole milliseconds or seconds.
func lengthIn(unit, text string) (int64, error) {
	d, err := length(text)
	if err != nil {
		return 0, err
	}
	per := time.Millisecond
	if unit == "s" {
		per = time.Second
	}
	if d%per != 0 {
		return 0, fmt.Errorf("is not a whole number of %s", unit)
	}
	return int64(d / per), nil
}

// length reads a duration of Go, or a number of days such as 7d.
func length(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(text)
}

// setTime reads RFC 3339, "now", or a length of time from now: +30s, -1h.
func (r *reader) setTime(place reflect.Value, text string) error {
	t, err := r.instant(text)
	if err == nil {
		place.SetInt(int64(t))
	}
	return err
}

func (r *reader) instant(text string) (api.Time, error) {
	if text == "now" {
		return api.TimeOf(r.now), nil
	}
	t, err := r.parse(text)
	if err == nil && t <= 0 {
		// The first instant there is would count as absent.
		err = errors.New("must be after 1970-01-01T00:00:00.000Z")
	}
	return t, err
}

func (r *reader) parse(text string) (api.Time, error) {
	if strings.HasPrefix(text, "+") || strings.HasPrefix(text, "-") {
		if d, err := length(text[1:]); err == nil && d >= 0 {
			if text[0] == '-' {
				d = -d
			}
			return api.TimeOf(r.now.Add(d)), nil
		}
	} else if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return api.TimeOf(t), nil
	}
	return 0, errors.New("must be an instant such as 2026-01-31T12:00:00Z, or a length of time from now such as +30s or +7d")
}

// setList takes every text apart at its commas.
func setList(place reflect.Value, texts []string) {
	list := reflect.MakeSlice(place.Type(), 0, len(texts))
	for _, text := range texts {
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = reflect.Append(list, reflect.ValueOf(part).Convert(place.Type().Elem()))
			}
		}
	}
	place.Set(list)
}

// setObjects takes arrays and single objects, one after the other.
func (r *reader) setObjects(place reflect.Value, texts []string) error {
	list := reflect.MakeSlice(place.Type(), 0, len(texts))
	for _, text := range texts {
		b, err := r.content(text)
		if err != nil {
			return err
		}
		parts, err := elements(b)
		if err != nil {
			return err
		}
		for _, part := range parts {
			one := reflect.New(place.Type().Elem())
			if err := wire.DecodeJSON(part, one.Interface()); err != nil {
				return err
			}
			list = reflect.Append(list, one.Elem())
		}
	}
	place.Set(list)
	return nil
}

// elements takes a JSON array apart; anything else is its own only element.
func elements(b []byte) ([][]byte, error) {
	if jsontext.Value(b).Kind() != '[' {
		return [][]byte{b}, nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if _, err := d.ReadToken(); err != nil {
		return nil, errNotJSON
	}
	var out [][]byte
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return nil, errNotJSON
		}
		out = append(out, v.Clone())
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errNotJSON
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, errNotJSON
	}
	return out, nil
}

// errNotJSON also helps those whose shell took the quotes away.
var errNotJSON = errors.New(`is not valid JSON; a text needs its own quotes, as in '"hello"'`)

// setObject reads the JSON of one structure.
func (r *reader) setObject(place reflect.Value, text string) error {
	b, err := r.content(text)
	if err != nil {
		return err
	}
	one := reflect.New(place.Type().Elem())
	if err := wire.DecodeJSON(b, one.Interface()); err != nil {
		return err
	}
	// Here, because a zero in it counts as absent once it is part of a request.
	if found := api.Validate(one.Interface()); len(found) > 0 {
		return api.ValidationError(found)
	}
	place.Set(one)
	return nil
}

// setMap reads a JSON object whose names are the caller's.
func (r *reader) setMap(place reflect.Value, text string) error {
	v, err := r.json(text)
	if err != nil {
		return err
	}
	one := reflect.New(place.Type())
	if err := json.Unmarshal(v, one.Interface()); err != nil {
		return errors.New(`must be a JSON object such as '{"region": ["eu", "us"]}'`)
	}
	place.Set(one.Elem())
	return nil
}

// json reads any JSON value.
func (r *reader) json(text string) (api.JSON, error) {
	b, err := r.content(text)
	if err != nil {
		return nil, err
	}
	if !jsontext.Value(b).IsValid() {
		return nil, errNotJSON
	}
	var v api.JSON
	err = v.UnmarshalJSON(b)
	return v, err
}

// content is the text itself, the content of the file after an @, or for "-"
// what comes on standard input.
func (r *reader) content(text string) ([]byte, error) {
	switch {
	case text == "-" && r.read:
		return nil, errors.New("standard input was read for another flag already")
	case text == "-":
		r.read = true
		b, err := io.ReadAll(r.stdin)
		if err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		return b, nil
	case strings.HasPrefix(text, "@"):
		b, err := os.ReadFile(text[1:])
		if err != nil {
			return nil, fmt.Errorf("cannot read the file: %w", err)
		}
		return b, nil
	}
	return []byte(text), nil
}
