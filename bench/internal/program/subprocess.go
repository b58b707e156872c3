package program

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

// SelfCommand returns a command that runs this program again with the given arguments.
func SelfCommand(args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, args...), nil
}

// TaskCommand returns a command that runs this program again with two arguments: arg and the task as
// JSON. The command shares the standard error of this process.
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

// Stop sends SIGTERM to a process, waits until readers have read its output to the end, and then
// waits for the process. It returns an error if the exit code is not wantCode.
func Stop(cmd *exec.Cmd, readers *sync.WaitGroup, wantCode int) error {
	signalled := cmd.Process.Signal(syscall.SIGTERM)
	readers.Wait()
	waited := cmd.Wait()
	if cmd.ProcessState.ExitCode() == wantCode {
		return signalled
	}
	return errors.Join(signalled, waited)
}
