package program

import (
	"errors"
	"os"
	"runtime/pprof"
)

// RunProfiled runs run, and returns its error. It writes a CPU profile to file.cpu, and a profile
// of all allocations of the process to file.heap. If file is "", it writes no profiles.
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
