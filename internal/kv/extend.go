package kv

import "github.com/cockroachdb/pebble/v2/vfs"

// A sync of a file that has grown must make its new length durable too, which
// takes the file system a transaction of its own: on ext4 it makes a small synced
// append take half as long again, or twice as long. So the log is given its length
// ahead, in steps. What is not written yet reads as zeros, which no record begins
// with: it is taken for the end of the log like what an earlier use left behind
// in a log that is used again.
const (
	logStep  = 4 << 20  // bytes, where the file system can lengthen a file without writing to it
	zeroStep = 64 << 10 // bytes, where zeros must be written
)

// reserve makes room in a log for the next n bytes. It promises nothing: without
// room ahead the log grows as it is written, and a full disk is found by the write.
func (f *written) reserve(n int) {
	need := f.size.Load() + uint64(n)
	if need <= f.length || f.disk.frozen() {
		return
	}
	for _, by := range []struct {
		step  uint64
		reach func(f vfs.File, from, to uint64) error
	}{{logStep, allocate}, {zeroStep, writeZeros}} {
		to := (need + by.step - 1) / by.step * by.step
		if by.reach(f.File, f.length, to) == nil {
			f.length = to
			return
		}
	}
	f.length = need
}

func writeZeros(f vfs.File, from, to uint64) error {
	_, err := f.WriteAt(make([]byte, to-from), int64(from))
	return err
}
