// Package program is what programs that measure do alike: they run themselves again,
// profile what they run, and read lists of numbers.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
)

// SelfCommand returns the command that runs this program with other arguments.
func SelfCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}

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

// ParseCounts reads a list of numbers.
func ParseCounts(list []string) (all []int, err error) {
	for _, s := range list {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of at least 1", s)
		}
		all = append(all, n)
	}
	return all, nil
}
