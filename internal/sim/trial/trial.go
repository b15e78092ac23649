package trial

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Long says that everything is to be tried, not a sample.
func Long() bool { return os.Getenv("KEYLOAD_LONG") != "" }

// Count is how many trials there are: of a short run, or of a long one.
func Count(short, long int) int {
	if Long() {
		return long
	}
	return short
}

// Seed is where the draws of a test begin: KEYLOAD_SEED, or always the same.
func Seed(t *testing.T, usual uint64) uint64 {
	t.Helper()
	seed := usual
	if text := os.Getenv("KEYLOAD_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("KEYLOAD_SEED: %v", err)
		}
		seed = n
	}
	return seed
}

// Seeds are the first seed of a test of many trials and how many there are: of a
// short run or a long one, or the one of KEYLOAD_SEED.
func Seeds(t *testing.T, short, long int) (first uint64, count int) {
	t.Helper()
	if os.Getenv("KEYLOAD_SEED") != "" {
		return Seed(t, 0), 1
	}
	return 1, Count(short, long)
}

// Replay tells how to run one seed of a test again, when it has failed.
func Replay(t *testing.T, pkg, test string, seed uint64) {
	t.Helper()
	if !t.Failed() {
		return
	}
	long := ""
	if Long() {
		long = "KEYLOAD_LONG=1 "
	}
	t.Logf("replay: %sKEYLOAD_SEED=%d go test -count=1 %s -run '^%s$'", long, seed, pkg, test)
}

// Report adds a line to the account of a long run. A test that failed says so in
// its line.
func Report(t *testing.T, what, format string, args ...any) {
	t.Helper()
	violations := "violations 0"
	if t.Failed() {
		violations = "VIOLATIONS: " + t.Name()
	}
	line := fmt.Sprintf("%-16s %s, %s\n", what, fmt.Sprintf(format, args...), violations)
	name := os.Getenv("KEYLOAD_SUMMARY")
	if name == "" {
		t.Log(line)
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Errorf("the summary cannot be written: %v", err)
	}
}
