package program

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

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
