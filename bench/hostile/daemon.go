package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/decorum-crawler/decorum/bench/internal/program"
	"github.com/decorum-crawler/decorum/crawler/daemon"
)

// A projectConfig is a project of the daemon: its name, its seeds as a YAML list without brackets,
// and further lines of its file.
type projectConfig struct {
	name, seedsYAML, extraYAML string
}

// projectTemplate is a project file, with the project's name, seeds and further lines, and the
// address of the web.
const projectTemplate = `project: %s
agent: {product: hostilebot, version: "1", contact: "mailto:bench@example.com"}
seeds: [%s]
%s
fetch: {allow_private: true, connect_to: ["::%s"]}
`

// goodProject is the project whose visits the program counts.
var goodProject = projectConfig{"good", commaSeparatedSeeds("good-%d.example/", goodHosts),
	"politeness: {delay: 1s, adaptive: 0}"}

// hostileProjects returns the projects that visit hostile sites. They have decorum's default
// settings, except for the scope that an operator of a broad crawl sets.
func hostileProjects() []projectConfig {
	return []projectConfig{
		{"bombs", commaSeparatedSeeds("bomb-%d.example/page", bombHosts), ""},
		{"wildcard", "http://a.wild.example/", "scope: {within: domain}"},
		{"names", "http://names.example/", "scope: {within: any}"},
		{"plain", commaSeparatedSeeds("plain-%d.example/", plainHosts), ""},
	}
}

// commaSeparatedSeeds returns n seeds: page formatted with each number below n.
func commaSeparatedSeeds(page string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = "http://" + fmt.Sprintf(page, i)
	}
	return strings.Join(all, ", ")
}

// serveArg as the first argument makes this program the daemon. The next argument is the directory
// of the cgroup to enter.
const serveArg = "serve"

// runDaemonInCgroup runs the daemon's process. It does not return.
func runDaemonInCgroup(group string) {
	if err := enterCgroup(group); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Args = append([]string{os.Args[0], serveArg}, os.Args[3:]...)
	daemon.Main(nil)
}

// A daemonProcess is a running daemon.
type daemonProcess struct {
	cmd            *exec.Cmd
	logReaderGroup sync.WaitGroup // the goroutine that reads the log

	mu            sync.Mutex              // guards warningCounts
	warningCounts map[logWarningCount]int // lines of the log, by project and message
}

// A logWarningCount is a message of the daemon's log, and how many lines have it.
type logWarningCount struct {
	project, message string
	count            int // 0 in the keys of daemonProcess.warningCounts
}

// startDaemon starts decorum serve in the cgroup. It runs the projects, and connects to addr for
// all hosts. The log is also written to dir. A goroutine reads the log until the daemon ends.
func startDaemon(dir string, group *cgroup, addr string, projects []projectConfig) (*daemonProcess, error) {
	folder := filepath.Join(dir, "projects")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	for _, p := range projects {
		text := fmt.Appendf(nil, projectTemplate, p.name, p.seedsYAML, p.extraYAML, addr)
		if err := os.WriteFile(filepath.Join(folder, p.name+".yaml"), text, 0o600); err != nil {
			return nil, err
		}
	}
	// Start the process and the goroutine that reads its log.
	cmd, err := program.SelfCommand(serveArg, group.dir, "--data", filepath.Join(dir, "data"), "--projects", folder,
		"--start-new", "--listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "warn")
	if err != nil {
		return nil, err
	}
	logFile, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	d := &daemonProcess{cmd: cmd, warningCounts: map[logWarningCount]int{}}
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, logFile.Close())
	}
	d.logReaderGroup.Go(func() {
		defer logFile.Close()
		d.countEachLogMessage(io.TeeReader(stderr, logFile))
	})
	return d, nil
}

// countEachLogMessage counts the lines of the daemon's log by project and message, until the log
// ends.
func (d *daemonProcess) countEachLogMessage(log io.Reader) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var line struct{ Msg, Project string }
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue
		}
		d.mu.Lock()
		d.warningCounts[logWarningCount{project: line.Project, message: line.Msg}]++
		d.mu.Unlock()
	}
}

// warnings returns the messages of the log so far, with their counts.
func (d *daemonProcess) warnings() []logWarningCount {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]logWarningCount, 0, len(d.warningCounts))
	for w, n := range d.warningCounts {
		w.count = n
		all = append(all, w)
	}
	return all
}

// stop ends the daemon with SIGTERM and waits for it.
func (d *daemonProcess) stop() error {
	return program.Stop(d.cmd, &d.logReaderGroup, daemon.ExitStopped)
}
