package cli

import (
	"reflect"
	"regexp"
	"strings"
)

// programName is what the program is called where nothing else is known.
const programName = "keyload"

// A typedName is the program as it was typed, for example bin/keyload. Commands
// that the program suggests begin with it, so that they can be copied.
type typedName string

// word is the name as a shell reads it back.
func (n typedName) word() string {
	if n == "" {
		return programName
	}
	return shellWord(string(n))
}

// command is a command of this program, for a shell.
func (n typedName) command(words ...string) string {
	line := n.word()
	for _, w := range words {
		line += " " + shellWord(w)
	}
	return line
}

// suggested is a command in a text: the program's name and one of its first
// words.
var suggested = regexp.MustCompile(`\b` + programName + ` (` + strings.Join(firstWords(), "|") + `)\b`)

// in writes the commands that a text suggests as they would be typed here.
func (n typedName) in(text string) string {
	return suggested.ReplaceAllStringFunc(text, func(command string) string {
		return n.word() + strings.TrimPrefix(command, programName)
	})
}

// firstWords are the first words of all commands that people use.
func firstWords() []string {
	var out []string
	t := reflect.TypeFor[program]()
	for i := range t.NumField() {
		f := t.Field(i)
		_, command := f.Tag.Lookup("cmd")
		_, hidden := f.Tag.Lookup("hidden")
		if command && !hidden {
			out = append(out, strings.ToLower(f.Name))
		}
	}
	for _, b := range branches(operations()) {
		out = append(out, b.word)
	}
	return out
}

// plainWord is a text that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellWord quotes a text for a shell where it must be.
func shellWord(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
