package cli

import "testing"

func TestSuggestedCommandsBeginWithTheProgramAsItWasTyped(t *testing.T) {
	const text = "an older keyload leaves it; see keyload queues --help, keyload init --dir data"
	for name, want := range map[typedName]string{
		"":              text,
		"keyload":       text,
		"bin/keyload":   "an older keyload leaves it; see bin/keyload queues --help, bin/keyload init --dir data",
		"my bin/key$1d": "an older keyload leaves it; see 'my bin/key$1d' queues --help, 'my bin/key$1d' init --dir data",
	} {
		if got := name.in(text); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}

func TestAShellReadsAQuotedWordBackAsItWas(t *testing.T) {
	for text, want := range map[string]string{
		"bin/keyload": "bin/keyload", "a b": "'a b'", "": "''", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "~": "'~'",
	} {
		if got := shellWord(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
