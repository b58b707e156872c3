// Package program is what programs that measure do alike: they run themselves again with work as
// JSON, stop processes, share work among goroutines, profile what they run, and read lists of numbers.
package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"sync"
	"syscall"
)

// Exit ends the program of a name: with code 0 if err is nil, and else with code 1, after err was
// printed to standard error.
func Exit(name string, err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// SelfCommand returns the command that runs this program with other arguments.
func SelfCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}

// TaskCommand returns the command that runs this program with two arguments, arg and the task as
// JSON. Its errors go to standard error.
func TaskCommand(arg string, task any) (*exec.Cmd, error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd, err := SelfCommand(arg, string(text))
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	return cmd, nil
}

// Stop ends a process in order, by SIGTERM: it must exit with the code wanted. The readers of its
// output are waited for first.
func Stop(cmd *exec.Cmd, readers *sync.WaitGroup, wantCode int) error {
	signalled := cmd.Process.Signal(syscall.SIGTERM)
	readers.Wait()
	waited := cmd.Wait()
	if cmd.ProcessState.ExitCode() == wantCode {
		return signalled
	}
	return errors.Join(signalled, waited)
}

// RunWorkers runs work in n goroutines, which have the numbers from 0 to n-1, and returns the errors
// of all when the last has returned.
func RunWorkers(n int, work func(worker int) error) error {
	errs := make([]error, n)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() { errs[i] = work(i) })
	}
	group.Wait()
	return errors.Join(errs...)
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
