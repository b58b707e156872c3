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

const topHelp = `Watch a running daemon: its projects and what they do, the hosts that matter most,
the visits in hand and the brakes that are on. Where the output is no terminal, it is
written once.

Keys: q ends, j and k (or the arrows) choose a project, p pauses and resumes it.`

func NewTopCommand(env *command.Env) *cobra.Command {
	var r crawlaccess.DaemonFlags
	var interval project.Duration = project.Duration(2 * time.Second)
	c := &cobra.Command{Use: "top", Short: "Watch a daemon", Long: topHelp, Args: command.ArgsOrUsageError(cobra.NoArgs)}
	r.AddFlags(c.Flags())
	c.Flags().Var(server.DurationFlag{Duration: &interval}, "every", "ask again after `TIME`")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := env.WithSignalCancel(c.Context())
		defer stop()
		client, err := r.NewClient(ctx)
		if err != nil {
			return err
		}
		return r.ExplainError(ctx, (&topSession{client: client}).run(ctx, env.Stdout, max(time.Duration(interval), 100*time.Millisecond)))
	}
	return c
}

// run shows what there is to see, once or until somebody has seen enough.
func (w *topSession) run(ctx context.Context, stdout *terminal.StickyErrorWriter, interval time.Duration) error {
	out, ok := stdout.Underlying.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) || !term.IsTerminal(int(os.Stdin.Fd())) {
		v, err := w.fetchSnapshot(ctx)
		if err != nil {
			return err
		}
		return v.render(time.Now()).PrintTo(stdout)
	}
	oldState, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return err
	}
	// The other screen, so that what was there before is there again after.
	_, err = io.WriteString(out, "\x1b[?1049h\x1b[?25l")
	err = errors.Join(err, w.redrawUntilQuit(ctx, out, interval))
	_, end := io.WriteString(out, "\x1b[?25h\x1b[?1049l")
	return errors.Join(err, end, term.Restore(int(os.Stdin.Fd()), oldState))
}

// redrawUntilQuit draws until a key or a signal ends it.
func (w *topSession) redrawUntilQuit(ctx context.Context, out *os.File, interval time.Duration) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	keys := make(chan byte, 16)
	go readKeypresses(os.Stdin, keys, stop, ctx.Done()) // it ends with the process: nothing else ends a read of a terminal
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		v, err := w.fetchSnapshot(ctx)
		if ctx.Err() != nil {
			return nil // a key that ends ends what is waited for too
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

// readKeypresses sends what is typed: of an arrow, its last letter. It stops at a key that
// ends, and where there is no more to read; others are dropped while too many wait.
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

// ctrlC is a key where the terminal is raw.
const ctrlC = 3

// drawScreen fills the terminal with lines, cut to its size.
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

// A topSession knows which project is looked at.
type topSession struct {
	client          *api.Client
	selectedProject string
}

// A daemonSnapshot is what a daemon shows at a moment.
type daemonSnapshot struct {
	selectedProject      string
	projects             []api.Project
	throughputSamples    []api.ThroughputSample // of the chosen project, as what follows
	hostListPage         *api.HostListPage
	activeVisits         []api.ActiveVisit
	selectedProjectError string // why the daemon does not say what the chosen project does
	brakes               []api.Brake
}

// Most that is shown of each.
const (
	maxTopHosts   = 10
	maxTopVisits  = 8
	maxTopSamples = 60
)

// fetchSnapshot asks the daemon.
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
		v.selectedProjectError = p.Error() // of one project: it may have no file that makes sense, or be out of reach
		return v, nil
	}
	return v, err
}

// fetchProjectActivity asks the daemon what the chosen project does.
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

// projectIndex returns where a project stands in the list; -1 if it does not.
func (v *daemonSnapshot) projectIndex(name string) int {
	return slices.IndexFunc(v.projects, func(p api.Project) bool { return p.Name == name })
}

// handleKey does what a key is for.
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

// render writes a view.
func (v daemonSnapshot) render(now time.Time) *reporttext.Builder {
	s := new(reporttext.Builder)
	var shortfall api.Milliseconds
	for _, p := range v.projects {
		shortfall = max(shortfall, p.LargestDelayShortfall)
	}
	s.WriteLine("decorum, %s   projects: %d   %s", inspect.FormatTime(now), len(v.projects), reporttext.DelayShortfallText(shortfall))
	s.WriteLine("")
	s.WriteTable(func(row func(...any)) {
		row("", "PROJECT", "STATE", "PAGES/S", "PAGES", "ERRORS", "HOSTS", "DUE", "QUEUED", "")
		for _, p := range v.projects {
			mark := ""
			if p.Name == v.selectedProject {
				mark = ">"
			}
			row(mark, p.Name, p.State, fmt.Sprintf("%.1f", p.RecentThroughput.PagesPerSecond), p.Stats.Pages, p.Stats.Errors, p.FrontierCounts.QueuedHosts, p.FrontierCounts.DueHosts, p.FrontierCounts.QueuedURLs,
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

// writeSelectedProject writes what the chosen project does.
func (v daemonSnapshot) writeSelectedProject(s *reporttext.Builder, now time.Time) {
	s.WriteLine("")
	if v.selectedProjectError != "" {
		s.WriteLine("%s cannot be looked into: %s", v.selectedProject, plaintext.ReplaceNonPrintable(v.selectedProjectError))
		return
	}
	s.WriteLine("%s, pages a second: %s", v.selectedProject, sparkline(v.throughputSamples))
	s.WriteLine("")
	s.WriteTable(func(row func(...any)) {
		row("HOST", "STATE", "QUEUED", "DECLARED", "CONFIGURED", "MEDIAN", "LAST", "FAILED")
		for _, h := range v.hostListPage.Hosts {
			row(h.Host, h.State, h.QueuedURLs, time.Duration(h.CrawlDelay), time.Duration(h.ConfiguredDelay), time.Duration(h.MedianObservedDelay), h.LastStatus, h.Failures)
		}
	})
	s.WriteLine("")
	s.WriteLine("in hand: %d", len(v.activeVisits))
	for _, l := range v.activeVisits[:min(len(v.activeVisits), maxTopVisits)] {
		s.WriteLine("  %5.1fs  %s", now.Sub(l.RequestedAt).Seconds(), plaintext.ReplaceNonPrintable(l.URL))
	}
}

// sparkline draws pages a second, the latest at the end.
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
