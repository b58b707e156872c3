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

// A daemonProcess is a daemon that runs as decorum serve does.
type daemonProcess struct {
	api.Client
	cmd            *exec.Cmd
	projectsDir    string         // the folder of project files
	logReaderGroup sync.WaitGroup // its reader
}

// serveArg makes this program the decorum command.
const serveArg = "serve"

// profileEnv names the file for the profile that the daemon is asked for by SIGUSR1.
const profileEnv = "DECORUM_SOAK_PROFILE"

// runDaemon is the daemon's process.
func runDaemon() {
	if file := os.Getenv(profileEnv); file != "" {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGUSR1)
		go func() {
			for range signals {
				if err := writeHeapProfile(file); err != nil {
					fmt.Fprintln(os.Stderr, "no profile:", err)
				}
			}
		}()
	}
	daemon.Main(nil)
}

// writeHeapProfile writes a profile of the heap as it is now.
func writeHeapProfile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(f), f.Close())
}

// startDaemon starts the daemon of a plan, and waits until it answers.
func startDaemon(p soakOptions) (*daemonProcess, error) {
	data := filepath.Join(p.Dir, "data")
	d := &daemonProcess{projectsDir: filepath.Join(p.Dir, "projects")}
	if err := os.Mkdir(d.projectsDir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.cmd, err = program.SelfCommand(serveArg, "--data", data, "--projects", d.projectsDir, "--api-private-networks", "--listen", "127.0.0.1:0", "--log-format", "json"); err != nil {
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
	listening := make(chan string, 1)
	d.logReaderGroup.Go(func() { copyLogAndReportAddr(stderr, p.Log, listening) })
	addr, ok := <-listening
	if !ok {
		return nil, fmt.Errorf("decorum serve did not come up: %w", d.wait())
	}
	token, err := os.ReadFile(filepath.Join(data, "token"))
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	d.Client = api.Client{Server: "http://" + addr, Token: strings.TrimSpace(string(token))}
	return d, nil
}

// copyLogAndReportAddr copies the daemon's log, and says where it listens.
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

// projectFilePath is where the file of a project is.
func (d *daemonProcess) projectFilePath(project string) string {
	return filepath.Join(d.projectsDir, project+".yaml")
}

// awaitProjectsCondition waits until the projects are as so says.
func (d *daemonProcess) awaitProjectsCondition(ctx context.Context, description string, condition func(map[string]api.Project) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("in a minute it did not come to this: %s", description))
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

// changeProjectStateAndWait asks a project for another state, and waits until it has come to it.
func (d *daemonProcess) changeProjectStateAndWait(ctx context.Context, project string, a api.ProjectAction, s api.ProjectState) error {
	if err := d.ControlProject(ctx, project, a); err != nil {
		return err
	}
	return d.awaitProjectsCondition(ctx, fmt.Sprintf("%s is %s", project, s), func(all map[string]api.Project) bool { return all[project].State == s })
}

// stop ends the daemon in order.
func (d *daemonProcess) stop() error {
	if err := program.Stop(d.cmd, &d.logReaderGroup, daemon.ExitStopped); err != nil {
		return fmt.Errorf("the daemon ended with %w", err)
	}
	return nil
}

func (d *daemonProcess) wait() error {
	d.logReaderGroup.Wait()
	return d.cmd.Wait()
}

// sleep waits, and reports whether the context lasted as long.
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
