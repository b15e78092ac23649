package peer

import (
	"errors"
	"fmt"

	"github.com/keyload/keyload/internal/frame"
	"github.com/keyload/keyload/internal/wire"
)

// Versions of what is said on a connection. Both sides speak the lower one of
// their highest; a node one release older must be understood.
const (
	version    = 1
	minVersion = 1
)

// maxGreeting is the largest hello or welcome, in bytes.
const maxGreeting = 4 << 10

// use is what a connection is for. Append only.
type use byte

const (
	forMessages use = 1
	forSnapshot use = 2
	forCalls    use = 3
)

func (u use) String() string {
	switch u {
	case forMessages:
		return "messages"
	case forSnapshot:
		return "snapshot"
	case forCalls:
		return "calls"
	}
	return fmt.Sprintf("use %d", byte(u))
}

// hello is the first frame of who dials.
type hello struct {
	Version uint16 `cbor:"1,keyasint"` // highest that is spoken
	Use     use    `cbor:"2,keyasint"`
	Node    uint64 `cbor:"3,keyasint"` // who dials
	To      uint64 `cbor:"4,keyasint"` // who is meant; 0: whoever is there
	Address string `cbor:"5,keyasint"` // where the dialing node is reached
}

// welcome is the answer to it.
type welcome struct {
	Version uint16 `cbor:"1,keyasint"` // that is spoken from here on
	Address string `cbor:"2,keyasint"` // where the answering node is reached
	Refusal string `cbor:"3,keyasint"` // why the connection ends here; empty: it does not
}

// refusedError is what the other side said instead of a welcome.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return "the other node refuses the connection: " + e.text }

// greet says hello and reads the answer.
func (l *link) greet(h hello) (welcome, error) {
	var w welcome
	if err := l.writeGreeting(kindHello, h); err != nil {
		return w, err
	}
	if err := l.readGreeting(kindWelcome, &w); err != nil {
		return w, err
	}
	if w.Refusal != "" {
		return w, &refusedError{w.Refusal}
	}
	if w.Version < minVersion || w.Version > version {
		return w, fmt.Errorf("the other node chose version %d of the protocol; this one speaks %d to %d", w.Version, minVersion, version)
	}
	return w, nil
}

func (l *link) writeGreeting(kind frame.Kind, v any) error {
	b, err := wire.EncodeCBOR(v)
	if err != nil {
		return err
	}
	if len(b) > maxGreeting {
		return errors.New("the greeting is too long")
	}
	_, err = l.conn.Write(frame.Header{Kind: kind}.Append(nil, nil, b))
	return err
}

func (l *link) readGreeting(kind frame.Kind, v any) error {
	h, err := l.in.Next()
	if err != nil {
		return err
	}
	if h.Kind != kind || h.Size > maxGreeting {
		return fmt.Errorf("%w: a greeting was expected, not %d bytes of kind %d", errProtocol, h.Size, h.Kind)
	}
	b := make([]byte, h.Size)
	if err := l.in.Read(b); err != nil {
		return err
	}
	if err := wire.ReadCBOR(b, v); err != nil {
		return fmt.Errorf("%w: a greeting that cannot be read", errProtocol)
	}
	return nil
}

// refusal says why a hello is not answered with a welcome; "" if it is.
func (o *Options) refusal(h hello, from Name) string {
	switch {
	case h.Version < minVersion:
		return fmt.Sprintf("it speaks version %d of the protocol at most, this node speaks %d to %d: upgrade it", h.Version, minVersion, version)
	case h.Node != from.Node:
		return fmt.Sprintf("it says that it is node %d, but its certificate is that of %s", h.Node, from)
	case h.To != 0 && h.To != o.Node:
		return fmt.Sprintf("it looks for node %d, but this is node %d: one of the two has the other's address", h.To, o.Node)
	case h.Use != forMessages && h.Use != forSnapshot && h.Use != forCalls:
		return fmt.Sprintf("it wants a connection for %s, which this node does not know", h.Use)
	}
	return ""
}
