package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/crawler/daemon"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// A daemonProcess is a decorum serve process, with a client of its API.
type daemonProcess struct {
	api.Client
	cmd            *exec.Cmd
	projectsDir    string         // the folder of project files
	logReaderGroup sync.WaitGroup // the goroutine that reads the log
}

// serveArg as the first argument makes this program the decorum command.
const serveArg = "serve"

// profileEnv is the environment variable with the file for the heap profile that SIGUSR1 requests.
const profileEnv = "DECORUM_SOAK_PROFILE"

// runDaemon runs the daemon's process. It does not return.
func runDaemon() {
	if file := os.Getenv(profileEnv); file != "" {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1)
		go func() {
			for range signals {
				if err := writeHeapProfile(file); err != nil {
					fmt.Fprintln(os.Stderr, "cannot write the heap profile:", err)
				}
			}
		}()
	}
	daemon.Main(nil)
}

// writeHeapProfile collects garbage and writes a profile of the heap to file.
func writeHeapProfile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(f), f.Close())
}

// startDaemon starts a daemon with its data in p.Dir, and waits until it listens.
func startDaemon(p soakOptions) (*daemonProcess, error) {
	data := filepath.Join(p.Dir, "data")
	d := &daemonProcess{projectsDir: filepath.Join(p.Dir, "projects")}
	if err := os.Mkdir(d.projectsDir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.cmd, err = program.SelfCommand(serveArg, "--data", data, "--projects", d.projectsDir, "--api-private-networks",
		"--listen", "127.0.0.1:0", "--log-format", "json"); err != nil {
		return nil, err
	}
	d.cmd.Env = append(os.Environ(), profileEnv+"="+p.HeapProfileFile)
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	// The log has the address on which the daemon listens.
	listening := make(chan string, 1)
	d.logReaderGroup.Go(func() { copyLogAndReportAddr(stderr, p.Log, listening) })
	addr, ok := <-listening
	if !ok {
		return nil, fmt.Errorf("decorum serve ended before it listened: %w", d.wait())
	}
	token, err := os.ReadFile(filepath.Join(data, "token"))
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	d.Client = api.Client{Server: "http://" + addr, Token: strings.TrimSpace(string(token))}
	return d, nil
}

// copyLogAndReportAddr copies the daemon's log until it ends, and sends the listening address, once
// it is known, to listening. It closes listening at the end.
func copyLogAndReportAddr(from io.Reader, to io.Writer, listening chan<- string) {
	defer close(listening)
	sent := false
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var line struct{ Listen string }
		if !sent && json.Unmarshal(lines.Bytes(), &line) == nil && line.Listen != "" {
			listening <- line.Listen
			sent = true
		}
		fmt.Fprintf(to, "%s\n", lines.Bytes())
	}
}

// projectFilePath returns the path of a project's file.
func (d *daemonProcess) projectFilePath(project string) string {
	return filepath.Join(d.projectsDir, project+".yaml")
}

// awaitProjectsCondition waits up to a minute until condition accepts the projects, which it gets
// by name. description is for the error.
func (d *daemonProcess) awaitProjectsCondition(ctx context.Context, description string,
	condition func(map[string]api.Project) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("not within a minute: %s", description))
	defer cancel()
	for {
		all, err := d.Projects(ctx)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		byName := map[string]api.Project{}
		for _, p := range all {
			byName[p.Name] = p
		}
		if condition(byName) {
			return nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// changeProjectStateAndWait sends action a to a project, and waits until the project is in state s.
func (d *daemonProcess) changeProjectStateAndWait(ctx context.Context, project string, a api.ProjectAction,
	s api.ProjectState) error {
	if err := d.ControlProject(ctx, project, a); err != nil {
		return err
	}
	return d.awaitProjectsCondition(ctx, fmt.Sprintf("%s is %s", project, s), func(all map[string]api.Project) bool {
		return all[project].State == s
	})
}

// stop ends the daemon with SIGTERM and waits for it.
func (d *daemonProcess) stop() error {
	if err := program.Stop(d.cmd, &d.logReaderGroup, daemon.ExitStopped); err != nil {
		return fmt.Errorf("the daemon ended with %w", err)
	}
	return nil
}

// wait waits for the end of the log and of the process.
func (d *daemonProcess) wait() error {
	d.logReaderGroup.Wait()
	return d.cmd.Wait()
}

// sleep waits for d, and reports whether it passed before ctx was done.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
