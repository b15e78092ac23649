package cluster

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childMode is the environment variable that makes the test binary another program.
const childMode = "KEYLOAD_SIM_CLUSTER"

// TestMain lets the test binary be a node, so that nodes are real processes, or the
// program that ways are tried with.
func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "node":
		if err := serveNode(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "talker":
		talk(os.Args[1])
	default:
		goleak.VerifyTestMain(m)
	}
}

// talk is a process that echoes at an address, and on each line of its input asks
// another address whether it echoes.
func talk(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		panic(err)
	}
	fmt.Println("http://" + address)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				for in := bufio.NewScanner(c); in.Scan(); {
					fmt.Fprintln(os.Stderr, "heard", in.Text())
					fmt.Fprintln(c, in.Text())
				}
			}()
		}
	}()
	conns := map[string]net.Conn{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		word, to, _ := strings.Cut(in.Text(), " ")
		c := conns[to]
		if c == nil {
			if c, err = net.Dial("tcp", to); err != nil {
				fmt.Fprintln(os.Stderr, "asked", word, err)
				continue
			}
			conns[to] = c
		}
		fmt.Fprintln(c, word)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		answer, err := bufio.NewReader(c).ReadString('\n')
		fmt.Fprintln(os.Stderr, "asked", word, strings.TrimSpace(answer), err)
	}
}
