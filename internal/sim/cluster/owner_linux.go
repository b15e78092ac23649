package cluster

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ownerOf is which of the processes has dialed a connection that was accepted here;
// 0 when it is none of them. TLS says it too, to nobody but the node itself.
func ownerOf(accepted net.Conn, pids []int) int {
	socket, err := socketOf(accepted.RemoteAddr().(*net.TCPAddr).AddrPort(), accepted.LocalAddr().(*net.TCPAddr).AddrPort())
	if err != nil {
		return 0
	}
	for _, pid := range pids {
		if owns(pid, socket) {
			return pid
		}
	}
	return 0
}

// socketOf finds a connection of this machine by its two ends, and answers the
// number of the socket that the first belongs to.
func socketOf(local, remote netip.AddrPort) (inode string, err error) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) > 9 && fields[1] == kernelForm(local) && fields[2] == kernelForm(remote) {
			return fields[9], nil
		}
	}
	return "", fmt.Errorf("no connection from %v to %v", local, remote)
}

// kernelForm is an address as the kernel writes it: four bytes backward, and the port.
func kernelForm(a netip.AddrPort) string {
	b := a.Addr().Unmap().As4()
	return fmt.Sprintf("%02X%02X%02X%02X:%04X", b[3], b[2], b[1], b[0], a.Port())
}

func owns(pid int, inode string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && to == "socket:["+inode+"]" {
			return true
		}
	}
	return false
}
