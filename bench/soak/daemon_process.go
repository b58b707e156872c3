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

// A process is a daemon that runs as decorum serve does.
type process struct {
	api.Client
	cmd      *exec.Cmd
	projects string         // the folder of project files
	log      sync.WaitGroup // its reader
}

// serveArg makes this program the decorum command.
const serveArg = "serve"

// profileEnv names the file for the profile that the daemon is asked for by SIGUSR1.
const profileEnv = "DECORUM_SOAK_PROFILE"

// beDaemon is the daemon's process.
func beDaemon() {
	if file := os.Getenv(profileEnv); file != "" {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGUSR1)
		go func() {
			for range asked {
				if err := profile(file); err != nil {
					fmt.Fprintln(os.Stderr, "no profile:", err)
				}
			}
		}()
	}
	daemon.Main(nil)
}

// profile writes a profile of the heap as it is now.
func profile(file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	runtime.GC()
	return errors.Join(pprof.WriteHeapProfile(f), f.Close())
}

// startDaemon starts the daemon of a plan, and waits until it answers.
func startDaemon(p plan) (*process, error) {
	data := filepath.Join(p.Dir, "data")
	d := &process{projects: filepath.Join(p.Dir, "projects")}
	if err := os.Mkdir(d.projects, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.cmd, err = program.Again(serveArg, "--data", data, "--projects", d.projects, "--api-private-networks", "--listen", "127.0.0.1:0", "--log-format", "json"); err != nil {
		return nil, err
	}
	d.cmd.Env = append(os.Environ(), profileEnv+"="+p.Profile)
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	d.log.Go(func() { readLog(stderr, p.Log, listening) })
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

// readLog copies the daemon's log, and says where it listens.
func readLog(from io.Reader, to io.Writer, listening chan<- string) {
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

// file is where the file of a project is.
func (d *process) file(project string) string { return filepath.Join(d.projects, project+".yaml") }

// await waits until the projects are as so says.
func (d *process) await(ctx context.Context, what string, so func(map[string]api.Project) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("in a minute it did not come to this: %s", what))
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
		if so(byName) {
			return nil
		}
		if !rest(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// become asks a project for another state, and waits until it has come to it.
func (d *process) become(ctx context.Context, project string, a api.ProjectAction, s api.ProjectState) error {
	if err := d.ControlProject(ctx, project, a); err != nil {
		return err
	}
	return d.await(ctx, fmt.Sprintf("%s is %s", project, s), func(all map[string]api.Project) bool { return all[project].State == s })
}

// stop ends the daemon in order.
func (d *process) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := d.wait()
	if d.cmd.ProcessState.ExitCode() == daemon.ExitStopped {
		return nil
	}
	return fmt.Errorf("the daemon ended with %w", err)
}

func (d *process) wait() error {
	d.log.Wait()
	return d.cmd.Wait()
}

// rest waits, and reports whether the context lasted as long.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
