package daemonctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/crawlaccess"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/server"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/terminal"
	"github.com/decorum-crawler/decorum/crawler/project"
	"github.com/decorum-crawler/decorum/internal/plaintext"
)

const topHelp = `Watch a running daemon: its projects, the most important hosts of one project, its
visits in flight, and the brakes that are on. If the output is not a terminal, print
all this once and exit.

Keys: q quits, j and k (or the arrows) choose a project, p pauses or resumes it.`

// NewTopCommand returns the command decorum top.
func NewTopCommand(env *command.Env) *cobra.Command {
	var r crawlaccess.DaemonFlags
	var interval project.Duration = project.Duration(2 * time.Second)
	c := &cobra.Command{Use: "top", Short: "Watch a daemon", Long: topHelp,
		Args: command.ArgsOrUsageError(cobra.NoArgs)}
	r.AddFlags(c.Flags())
	c.Flags().Var(server.DurationFlag{Duration: &interval}, "every", "refresh every `TIME`, as 5s, at least 100ms")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := env.WithSignalCancel(c.Context())
		defer stop()
		client, err := r.NewClient(ctx)
		if err != nil {
			return err
		}
		return r.ExplainError(ctx, (&topSession{client: client}).run(ctx, env.Stdout,
			max(time.Duration(interval), 100*time.Millisecond)))
	}
	return c
}

// run shows the daemon's state: on a terminal until the user quits, else once.
func (w *topSession) run(ctx context.Context, stdout *terminal.StickyErrorWriter, interval time.Duration) error {
	out, ok := stdout.Underlying.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
		v, err := w.fetchSnapshot(ctx)
		if err != nil {
			return err
		}
		return v.render(time.Now()).PrintTo(stdout)
	}
	// Raw mode delivers each key at once, without echo.
	oldState, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return err
	}
	// Draw on the terminal's alternate screen, so that the user's screen comes back afterwards.
	_, err = io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	err = errors.Join(err, w.redrawUntilQuit(ctx, out, interval))
	_, end := io.WriteString(out, "\x1b[?25h\x1b[?1049l")
	return errors.Join(err, end, term.Restore(int(os.Stdin.Fd()), oldState))
}

// redrawUntilQuit draws the daemon's state at each interval and after each key, until the user
// quits or a signal cancels ctx.
func (w *topSession) redrawUntilQuit(ctx context.Context, out *os.File, interval time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keys := make(chan byte, 16)
	// This goroutine may live until the process ends: a read from a terminal cannot be cancelled.
	go readKeypresses(os.Stdin, keys, stop, ctx.Done())
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		v, err := w.fetchSnapshot(ctx)
		if ctx.Err() != nil {
			return nil // the user quit during the calls
		}
		if err != nil {
			return err
		}
		if err := drawScreen(out, v.render(time.Now()).String()); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		case k := <-keys:
			if err := w.handleKey(ctx, k, v); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// readKeypresses sends each byte of in to keys. An arrow key arrives as an escape sequence; handleKey
// uses its last letter. readKeypresses drops keys while the channel is full. At q, Ctrl-C or the end
// of in it calls stop and returns.
func readKeypresses(in io.Reader, keys chan<- byte, stop func(), done <-chan struct{}) {
	defer stop()
	b := make([]byte, 1)
	for {
		if _, err := in.Read(b); err != nil || b[0] == 'q' || b[0] == ctrlC {
			return
		}
		select {
		case keys <- b[0]:
		case <-done:
			return
		default:
		}
	}
}

// ctrlC is the byte of Ctrl-C, which a raw terminal does not turn into a signal.
const ctrlC = 3

// drawScreen fills the terminal with text, cut to the terminal's size.
func drawScreen(out *os.File, text string) error {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	lines = lines[:min(len(lines), height)]
	for i, l := range lines {
		if r := []rune(l); len(r) > width {
			lines[i] = string(r[:width])
		}
	}
	_, err = io.WriteString(out, "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\x1b[J")
	return err
}

// A topSession is one run of decorum top: the client and the project that the user has chosen.
type topSession struct {
	client          *api.Client
	selectedProject string
}

// A daemonSnapshot is the state of a daemon at a moment.
type daemonSnapshot struct {
	selectedProject      string // name; empty if the daemon has no project
	projects             []api.Project
	throughputSamples    []api.ThroughputSample // of the selected project
	hostListPage         *api.HostListPage      // of the selected project
	activeVisits         []api.ActiveVisit      // of the selected project
	selectedProjectError string                 // why the daemon cannot inspect the selected project; empty: it can
	brakes               []api.Brake
}

// The most that decorum top shows of each.
const (
	maxTopHosts   = 10
	maxTopVisits  = 8
	maxTopSamples = 60 // of pages a second
)

// fetchSnapshot gets the daemon's state through its API. If the selected project has gone, it
// selects the first.
func (w *topSession) fetchSnapshot(ctx context.Context) (v daemonSnapshot, err error) {
	if v.projects, err = w.client.Projects(ctx); err != nil {
		return v, err
	}
	if v.brakes, err = w.client.Brakes(ctx); err != nil || len(v.projects) == 0 {
		return v, err
	}
	if v.projectIndex(w.selectedProject) < 0 {
		w.selectedProject = v.projects[0].Name
	}
	v.selectedProject = w.selectedProject
	err = w.fetchProjectActivity(ctx, &v)
	if p := (*api.Problem)(nil); errors.As(err, &p) {
		// One project failed: its file may be invalid, or its Redis unreachable. Show the others.
		v.selectedProjectError = p.Error()
		return v, nil
	}
	return v, err
}

// fetchProjectActivity gets the throughput, the active visits and the hosts of the selected project.
func (w *topSession) fetchProjectActivity(ctx context.Context, v *daemonSnapshot) (err error) {
	if v.throughputSamples, err = w.client.ProjectThroughput(ctx, v.selectedProject, false); err != nil {
		return err
	}
	if v.activeVisits, err = w.client.ProjectActiveVisits(ctx, v.selectedProject); err != nil {
		return err
	}
	v.hostListPage, err = w.client.Hosts(ctx, v.selectedProject, api.HostQuery{Limit: maxTopHosts})
	return err
}

// projectIndex returns the index of the project name in v.projects, or -1.
func (v *daemonSnapshot) projectIndex(name string) int {
	return slices.IndexFunc(v.projects, func(p api.Project) bool { return p.Name == name })
}

// handleKey moves the selection (j, k, and the last letters B and A of arrow keys) or pauses or
// resumes the selected project (p). It ignores other keys.
func (w *topSession) handleKey(ctx context.Context, key byte, v daemonSnapshot) error {
	i := v.projectIndex(v.selectedProject)
	switch {
	case i < 0:
	case key == 'j' || key == 'B':
		w.selectedProject = v.projects[min(i+1, len(v.projects)-1)].Name
	case key == 'k' || key == 'A':
		w.selectedProject = v.projects[max(i-1, 0)].Name
	case key == 'p' && v.projects[i].State == api.StateRunning:
		return w.client.ControlProject(ctx, v.selectedProject, api.ActionPause)
	case key == 'p' && v.projects[i].State == api.StatePaused:
		return w.client.ControlProject(ctx, v.selectedProject, api.ActionResume)
	}
	return nil
}

// render formats the snapshot: the projects, the activity of the selected one, and the brakes.
func (v daemonSnapshot) render(now time.Time) *reporttext.Builder {
	s := new(reporttext.Builder)
	var shortfall api.Milliseconds
	for _, p := range v.projects {
		shortfall = max(shortfall, p.LargestDelayShortfall)
	}
	s.WriteLine("decorum, %s   projects: %d   %s", inspect.FormatTime(now), len(v.projects),
		reporttext.DelayShortfallText(shortfall))
	s.WriteLine("")
	s.WriteTable(func(row func(...any)) {
		row("", "PROJECT", "STATE", "PAGES/S", "PAGES", "ERRORS", "HOSTS", "DUE", "QUEUED", "")
		for _, p := range v.projects {
			mark := ""
			if p.Name == v.selectedProject {
				mark = ">"
			}
			row(mark, p.Name, p.State, fmt.Sprintf("%.1f", p.RecentThroughput.PagesPerSecond), p.Stats.Pages,
				p.Stats.Errors, p.FrontierCounts.QueuedHosts, p.FrontierCounts.DueHosts, p.FrontierCounts.QueuedURLs,
				plaintext.ReplaceNonPrintable(strings.TrimSpace(p.StateReason+" "+p.FileError)))
		}
	})
	if v.selectedProject != "" {
		v.writeSelectedProject(s, now)
	}
	s.WriteLine("")
	writeBrakes(s, v.brakes)
	return s
}

// writeSelectedProject writes the throughput, the hosts and the active visits of the selected
// project, or why the daemon cannot inspect it.
func (v daemonSnapshot) writeSelectedProject(s *reporttext.Builder, now time.Time) {
	s.WriteLine("")
	if v.selectedProjectError != "" {
		s.WriteLine("cannot inspect %s: %s", v.selectedProject, plaintext.ReplaceNonPrintable(v.selectedProjectError))
		return
	}
	s.WriteLine("%s, pages a second: %s", v.selectedProject, sparkline(v.throughputSamples))
	s.WriteLine("")
	s.WriteTable(func(row func(...any)) {
		row("HOST", "STATE", "QUEUED", "DECLARED", "CONFIGURED", "MEDIAN", "LAST", "FAILED")
		for _, h := range v.hostListPage.Hosts {
			row(h.Host, h.State, h.QueuedURLs, time.Duration(h.CrawlDelay), time.Duration(h.ConfiguredDelay),
				time.Duration(h.MedianObservedDelay), h.LastStatus, h.Failures)
		}
	})
	s.WriteLine("")
	s.WriteLine("in flight: %d", len(v.activeVisits))
	for _, l := range v.activeVisits[:min(len(v.activeVisits), maxTopVisits)] {
		s.WriteLine("  %5.1fs  %s", now.Sub(l.RequestedAt).Seconds(), plaintext.ReplaceNonPrintable(l.URL))
	}
}

// sparkline draws the pages a second of the latest samples as bars, the latest at the end, with the
// highest rate.
func sparkline(samples []api.ThroughputSample) string {
	const bars = "▁▂▃▄▅▆▇█"
	samples = samples[max(0, len(samples)-maxTopSamples):]
	peak := 0.0
	for _, s := range samples {
		peak = max(peak, s.PagesPerSecond)
	}
	if peak == 0 {
		return "0"
	}
	var line strings.Builder
	for _, s := range samples {
		i := int(s.PagesPerSecond / peak * 7)
		line.WriteRune([]rune(bars)[min(max(i, 0), 7)])
	}
	return fmt.Sprintf("%s  (most: %.1f)", line.String(), peak)
}
