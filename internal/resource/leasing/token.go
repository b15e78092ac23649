package leasing

import (
	"github.com/keyload/keyload/api"
	"github.com/keyload/keyload/fault"
	"github.com/keyload/keyload/internal/token"
)

// OtherIncarnation takes the place of a token the door found to be of another
// history of the store; the empty text that of one it could not verify. No token
// has either form.
const OtherIncarnation = "-"

// Vet is, at the door, the text that goes into the log for a token: itself where
// it holds.
func Vet(tokens *token.Sealer, p token.Purpose, text string) string {
	_, err := tokens.Open(p, text)
	switch fault.CodeOf(err) {
	case "":
		return text
	case fault.TokenInvalidated:
		return OtherIncarnation
	default:
		return ""
	}
}

// VetItems keeps tokens that do not hold out of the log. Each item has its own
// outcome, so the command goes on without them. The items given stay as they are.
func VetItems(tokens *token.Sealer, p token.Purpose, given []api.CompleteItem) (items []api.CompleteItem, changed bool) {
	items = given
	for i := range given {
		t := Vet(tokens, p, given[i].Token)
		if t == given[i].Token {
			continue
		}
		if !changed {
			items, changed = append([]api.CompleteItem(nil), given...), true
		}
		items[i].Token = t
	}
	return items, changed
}

// Claims takes the claims out of a token that the door has let through. Errors:
// TokenInvalidated for one of another incarnation.
func Claims(text string) (claims []byte, ok bool, err error) {
	if text == OtherIncarnation {
		return nil, false, fault.New(fault.TokenInvalidated, "other_incarnation",
			"the token belongs to another history of this store (it was restored since, or the token is of another store); receive again")
	}
	claims, ok = token.Claims(text)
	return claims, ok, nil
}

// Holder is who a lease was given to: the hash of the principal, and the epoch of
// its policy.
type Holder struct {
	Principal [16]byte
	Policy    uint64
}

// Check refuses a token that was given to another principal, or under another
// policy. Errors: PermissionDenied.
func (h Holder) Check(caller Holder) error {
	switch {
	case h.Principal != caller.Principal:
		return fault.New(fault.PermissionDenied, "other_principal", "the token was given to another principal; only that one may complete the delivery")
	case h.Policy != caller.Policy:
		return PolicyChanged()
	}
	return nil
}

// PolicyChanged is the refusal of a delivery that was given under another policy.
func PolicyChanged() error {
	return fault.New(fault.PermissionDenied, "policy_epoch", "the caller's policy has changed since the delivery; let the lease end and receive again")
}
