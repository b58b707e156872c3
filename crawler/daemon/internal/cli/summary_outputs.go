package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/reporttext"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/datadir"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/inspect"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/storage"
)

// outputPath returns the path of the JSON lines, "-" for standard output.
func (j *foregroundRun) outputPath() string {
	return cmp.Or(j.Project.Output.JSONL, datadir.StateDir(j.Project.Store.Path).Path(datadir.OutputFile))
}

// An outputDir is a directory to which a run writes, with its field in the JSON summary.
type outputDir struct{ content, field, path string }

// outputDirs returns the directories to which the run writes beside its JSON lines. The ledger is not
// among them: it is not for reading pages.
func (j *foregroundRun) outputDirs() (dirs []outputDir) {
	if j.Project.Output.WriteBodies {
		dirs = append(dirs, outputDir{"bodies", "bodies",
			datadir.StateDir(j.Project.Store.Path).Path(datadir.BodiesDir)})
	}
	if warc := j.Project.Output.WARCDir; warc != "" {
		dirs = append(dirs, outputDir{"requests and responses (WARC)", "warc", warc})
	}
	return dirs
}

// outputFields returns the paths of the output as fields of the JSON summary.
func (j *foregroundRun) outputFields() (fields []any) {
	if j.isTemporary {
		return nil
	}
	fields = append(fields, "output", j.outputPath())
	for _, dir := range j.outputDirs() {
		fields = append(fields, dir.field, dir.path)
	}
	return fields
}

// writeOutputPaths writes where the pages of the run are: a line for the JSON lines, and one for each
// directory. A new run without a line of output has nothing to show, nor has one whose files are deleted.
func (j *foregroundRun) writeOutputPaths(s *reporttext.Builder) {
	counts := j.output.LineCounts()
	failed, pages := counts[0], int64(0)
	for _, n := range counts[1:] {
		pages += n
	}
	if pages+failed == 0 && !j.isResumed || j.isTemporary {
		return
	}
	what, where := countText(pages, "page"), j.outputPath()
	if failed > 0 {
		what += ", " + countText(failed, "failed visit")
	}
	if where == "-" {
		where = "standard output"
	}
	s.WriteLine("%s → %s", what, where)
	for _, dir := range j.outputDirs() {
		s.WriteLine("%s → %s", dir.content, dir.path)
	}
}

// lineCountsByStatus returns counts, as JSONLRecorder.LineCounts returns them, by name: 2xx, failed.
func lineCountsByStatus(counts [10]int64) map[string]int64 {
	byName := map[string]int64{}
	for class, n := range counts {
		if n > 0 {
			byName[statusClassName(class)] = n
		}
	}
	return byName
}

// statusCountsText lists the classes of status with the number of their visits to pages; empty if no page
// was visited.
func statusCountsText(counts [10]int64) string {
	var classes []string
	for class := 1; class <= len(counts); class++ { // failed visits last
		if n := counts[class%len(counts)]; n > 0 {
			classes = append(classes, fmt.Sprintf("%s %d", statusClassName(class%len(counts)), n))
		}
	}
	return strings.Join(classes, ", ")
}

// statusClassName returns the name of a class of status by its first digit; 0: no whole answer came.
func statusClassName(class int) string {
	if class == 0 {
		return "failed"
	}
	return fmt.Sprintf("%dxx", class)
}

// A suspendedHost is a host that the summary shows as suspended.
type suspendedHost struct {
	Host string `json:"host"`
	Why  string `json:"why"`
}

// maxSuspendedHosts is how many suspended hosts a summary shows. decorum report shows all.
const maxSuspendedHosts = 10

// suspendedHosts returns the first maxSuspendedHosts suspended hosts, each with its reason, and whether there
// are more. It leaves out what cannot be read: the summary must not fail.
func (j *foregroundRun) suspendedHosts(ctx context.Context, c storage.Counts) (hosts []suspendedHost, more bool) {
	if c.SuspendedURLs == 0 {
		return nil, false
	}
	q, err := inspect.New(ctx, j.Engine)
	if err != nil {
		return nil, false
	}
	reports, _ := q.SuspendedHosts(ctx, maxSuspendedHosts+1)
	for _, h := range reports[:min(len(reports), maxSuspendedHosts)] {
		why := h.HoldReason
		switch { // the store has no reason for a Retry-After of more than a day, or a refused address
		case why == "" && j.forbidden.reason(h.Host.Host) != "":
			why = "no visit may connect to it: " + j.forbidden.reason(h.Host.Host)
		case why == "" && h.LastStatus == 0:
			why = "it has not answered; the log says why"
		case why == "":
			why = fmt.Sprintf("its last answer had the status %d", h.LastStatus)
		}
		hosts = append(hosts, suspendedHost{h.Host.Host, why + ", until " + inspect.FormatTime(h.HeldUntil)})
	}
	return hosts, len(reports) > maxSuspendedHosts
}

// writeSuspendedHosts writes a line for each of suspendedHosts.
func (j *foregroundRun) writeSuspendedHosts(ctx context.Context, s *reporttext.Builder, c storage.Counts) {
	hosts, more := j.suspendedHosts(ctx, c)
	for _, h := range hosts {
		s.WriteLine("  %s: %s", h.Host, h.Why)
	}
	s.WriteLineIf(more, "  and others: decorum report --data %s", plaintext.ShellQuote(j.Project.Store.Path))
}

// countText returns a number with its noun, in the plural unless the number is 1.
func countText(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
