//go:build !linux

package target

// rename gives a file another name that nothing has.
func rename(from, to string) error { return linkAs(from, to) }
