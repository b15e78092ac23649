package check

// Unit is what the progress of a step is counted in.
type Unit int

// What steps count.
const (
	Rows Unit = iota
	Bytes
	Shards
)

// Step is one step of long work: what is done to each of its units.
type Step struct {
	Done string // such as "checked"
	Unit Unit
}

// Progress is told how many units of a step are done, of how many; total is 0 where
// that is not known, and may be an estimate until they are all done. It is called by
// one goroutine at a time.
type Progress func(step Step, done, total int64)

// The steps of this package.
var (
	rowsChecked   = Step{"checked", Rows}
	rowsCompared  = Step{"compared", Rows} // by a repair
	shardsChecked = Step{"checked", Shards}
)
