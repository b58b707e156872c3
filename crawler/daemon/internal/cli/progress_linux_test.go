package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/decorum-crawler/decorum/crawler"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/engine"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/storage/memory"
)

// openTerminal opens a pseudo-terminal. What is written to side is read from screen.
func openTerminal(t *testing.T) (screen, side *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { screen.Close() })
	fd := int(screen.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		t.Skip(err)
	}
	side, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { side.Close() })
	return screen, side
}

// The progress on a terminal is one line that is redrawn, unless callbacks or the output may print on the
// terminal: then it is a separate line every 10 s.
func TestProgressBesidePrints(t *testing.T) {
	handle := func(context.Context, *crawler.Visit) ([]crawler.LinkToVisit, error) { return nil, nil }
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	devNull, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer devNull.Close()
	_, otherTerminal := openTerminal(t)
	for _, tt := range []struct {
		name    string
		stdout  io.Writer
		handler crawler.Handler
		jsonl   string
		dryRun  bool
		redraws bool
	}{
		{"output in a file of its own", otherTerminal, nil, "", false, true},
		{"output on the terminal", otherTerminal, nil, "-", false, false},
		{"output into a pipe", &bytes.Buffer{}, nil, "-", false, false},
		{"output redirected to a file", file, nil, "-", false, true},
		{"output redirected to /dev/null", devNull, nil, "-", false, true},
		{"callbacks", otherTerminal, handle, "", false, false},
		{"callbacks that log to standard error", file, handle, "", false, false},
		{"callbacks of a dry run", otherTerminal, handle, "-", true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			screen, stderr := openTerminal(t)
			synctest.Test(t, func(t *testing.T) {
				a := &program{Env: command.Env{Stdout: terminal.NewStickyErrorWriter(tt.stdout),
					Stderr: terminal.NewStatusLineWriter(stderr)}}
				j := &foregroundRun{startedAt: time.Now(), Engine: &engine.Engine{
					Stores:  datadir.CrawlStores{Frontier: memory.New(memory.Config{})},
					Crawler: &crawler.Crawler{Handler: tt.handler, Settings: crawler.Settings{DryRun: tt.dryRun}}}}
				j.Project.Output.JSONL = tt.jsonl
				ended := make(chan struct{})
				time.AfterFunc(terminal.PrintInterval+terminal.DrawInterval/2, func() { close(ended) })
				a.showProgress(j, "auto", ended)
			})
			fmt.Fprint(stderr, "end of test")
			var got strings.Builder
			buf := make([]byte, 1<<12)
			for !strings.Contains(got.String(), "end of test") {
				n, err := screen.Read(buf)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(buf[:n])
			}
			if redraws := strings.Contains(got.String(), clearLine); redraws != tt.redraws ||
				!strings.Contains(got.String(), "0 pages, ") {
				t.Errorf("the line is redrawn: %v, want %v; the terminal got %q", redraws, tt.redraws, got.String())
			}
		})
	}
}
