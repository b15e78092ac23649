package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/keyload/keyload/internal/cli"
	"github.com/keyload/keyload/internal/cluster"
	"github.com/keyload/keyload/internal/kv"
	"github.com/keyload/keyload/internal/resource/system"
)

// TestMain lets the test binary be the program keyload, so that the scripts run
// real processes.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"keyload": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		context.AfterFunc(ctx, stop)
		os.Exit(cli.Run(ctx, os.Args[1:], cli.Standard()))
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("KEYLOAD_REWRITE") != "",
		Setup: func(env *testscript.Env) error {
			env.Values[running{}] = servers{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "serve": serve, "stop": stop, "capture": capture,
			"damage": damage, "cp-store": copyStore, "format": format, "stray": stray, "lose": lose,
			"private": private, "member": member,
		},
	})
}

// exits CODE COMMAND... runs a command that must exit with the code. Its output
// is compared with stdout and stderr as usual.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits code command...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := err.(*exec.ExitError); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exited with %d, want %s", code, args[0])
	}
}

// A server is a process started by serve.
type server struct {
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan error
}

// servers are those that run, by the directory as it was given.
type servers map[string]*server

// running is the key of a script's servers.
type running struct{}

// serve --dir DIR FLAGS... starts keyload serve, waits for its line, and sets
// KEYLOAD_URL.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	all := ts.Value(running{}).(servers)
	if neg || len(args) < 2 || args[0] != "--dir" || all[args[1]] != nil {
		ts.Fatalf("usage: serve --dir directory flags..., once at a time for each directory")
	}
	cmd := exec.Command(findIn(ts.Getenv("PATH"), "keyload"), append([]string{"serve"}, args...)...)
	s := &server{cmd: cmd, done: make(chan error, 1)}
	cmd.Dir = ts.MkAbs(".")
	cmd.Stderr = &s.log
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	all[args[1]] = s
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { s.done <- cmd.Wait() }()
	ts.Defer(func() { _ = cmd.Process.Kill() }) // nothing to do when it ended
	url := regexp.MustCompile(`https?://[^\s"]+`).FindString(line)
	if err != nil || url == "" {
		_ = cmd.Process.Kill()
		<-s.done
		ts.Fatalf("serve wrote %q, %v\n%s", line, err, &s.log)
	}
	ts.Setenv("KEYLOAD_URL", url)
}

// stop [DIR] interrupts the server of the directory, or the only one, and wants it to
// end well; the log becomes the file serve.log.
func stop(ts *testscript.TestScript, neg bool, args []string) {
	all := ts.Value(running{}).(servers)
	dirs := args
	if len(args) == 0 {
		dirs = slices.Collect(maps.Keys(all))
	}
	if neg || len(dirs) != 1 || all[dirs[0]] == nil {
		ts.Fatalf("no server runs there, or there are more of them")
	}
	s := all[dirs[0]]
	delete(all, dirs[0])
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	err := <-s.done
	ts.Check(os.WriteFile(ts.MkAbs("serve.log"), s.log.Bytes(), 0o600))
	if err != nil {
		ts.Fatalf("the server ended with %v\n%s", err, &s.log)
	}
}

// member DIR NODE [ADDRESS] writes the settings of a node of the cluster prod, with the
// certificates in certs. It joins at the address; without one it brings the store.
func member(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: member directory node [address]")
	}
	node, err := strconv.ParseUint(args[1], 10, 64)
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(cluster.Write(dir, cluster.Settings{
		Cluster: "prod", Node: node, Listen: "127.0.0.1:0", Bootstrap: len(args) == 2, Join: args[2:],
		CAFile: "../certs/ca.pem", CertFile: "../certs/node-" + args[1] + ".pem", KeyFile: "../certs/node-" + args[1] + ".key",
	}))
}

func findIn(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if full := filepath.Join(dir, name); isFile(full) {
			return full
		}
	}
	return ""
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// capture VARIABLE POINTER takes a value out of the JSON on standard output.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture variable pointer")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for part := range strings.SplitSeq(strings.TrimPrefix(args[1], "/"), "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[part]
		case []any:
			var i int
			if _, err := fmt.Sscan(part, &i); err != nil || i >= len(x) {
				ts.Fatalf("no %s in the answer", args[1])
			}
			v = x[i]
		}
	}
	if v == nil {
		ts.Fatalf("no %s in the answer", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

// damage DIR PATTERN flips a bit in the middle of every file of that name.
func damage(ts *testscript.TestScript, neg bool, args []string) {
	var files []string
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		if ok, _ := filepath.Match(args[1], filepath.Base(path)); ok && err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	}))
	if len(files) == 0 {
		ts.Fatalf("no file %s in %s", args[1], args[0])
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		ts.Check(err)
		if len(b) == 0 {
			continue
		}
		b[len(b)/2] ^= 0x10
		ts.Check(os.WriteFile(name, b, 0o600))
	}
}

// private PATH... wants that nobody but the owner may use what is there and below.
func private(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: private path...")
	}
	for _, arg := range args {
		ts.Check(filepath.WalkDir(ts.MkAbs(arg), func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode()&0o077 != 0 {
				err = fmt.Errorf("others may use %s: %v", path, info.Mode())
			}
			return err
		}))
	}
}

// cp-store FROM TO copies the directory of a store.
func copyStore(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(os.CopyFS(ts.MkAbs(args[1]), os.DirFS(ts.MkAbs(args[0]))))
}

// stray DIR adds a row that belongs to nothing.
func stray(ts *testscript.TestScript, neg bool, args []string) {
	change(ts, args[0], func(tx *kv.Tx) { tx.Put([]byte{0xfe, 1, 2}, []byte("x")) })
}

// lose DIR TABLE removes every row of a table.
func lose(ts *testscript.TestScript, neg bool, args []string) {
	id, err := strconv.ParseUint(args[1], 10, 8)
	ts.Check(err)
	change(ts, args[0], func(tx *kv.Tx) {
		var keys [][]byte
		ts.Check(tx.Scan([]byte{byte(id)}, []byte{byte(id) + 1}, false, func(key, _ []byte) (bool, error) {
			keys = append(keys, bytes.Clone(key))
			return true, nil
		}))
		if len(keys) == 0 {
			ts.Fatalf("there is no row of table %d", id)
		}
		for _, k := range keys {
			tx.Delete(k)
		}
	})
}

// format DIR N makes the store say that it has format N.
func format(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	change(ts, args[0], func(tx *kv.Tx) {
		id, ok, err := system.ReadIdentity(tx)
		ts.Check(err)
		if !ok {
			ts.Fatalf("the store has no identity")
		}
		id.Format = n
		system.WriteIdentity(tx, id)
	})
}

// change writes to a store below everything that knows what its rows mean.
func change(ts *testscript.TestScript, dir string, write func(*kv.Tx)) {
	s, err := kv.Open(ts.MkAbs(dir), kv.Options{MustExist: true})
	ts.Check(err)
	tx := s.NewTx()
	tx.Begin()
	write(tx)
	pending, err := tx.Commit()
	ts.Check(err)
	ts.Check(pending.Wait())
	tx.Close()
	ts.Check(s.Close())
}
