package program

import (
	"errors"
	"os"
	"runtime/pprof"
)

// RunProfiled runs run, with a profile of its processor time in file.cpu, and one of all
// that the process allocated in file.heap; without file there are none.
func RunProfiled(file string, run func() error) (err error) {
	if file == "" {
		return run()
	}
	cpu, err := os.Create(file + ".cpu")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cpu.Close()) }()
	heap, err := os.Create(file + ".heap")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, heap.Close()) }()
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = run()
	pprof.StopCPUProfile()
	return errors.Join(err, pprof.WriteHeapProfile(heap))
}
