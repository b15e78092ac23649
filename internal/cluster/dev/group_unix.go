//go:build unix

package dev

import (
	"os/exec"
	"syscall"
)

// apart keeps an interrupt that is typed from reaching the process too: it is
// asked to end when it is its turn.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
