package page

import (
	"cmp"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/robots"
)

// Bounds of what is shown of a robots.txt. What they leave out is in the raw file.
const (
	maxShownLines = 1000 // from the beginning
	contextLines  = 5    // around a line that is marked
	maxMarks      = 100
	maxLineBytes  = 1000 // bytes
)

// A robotsView is a robots.txt as it was fetched, line by line.
type robotsView struct {
	*api.RobotsFile
	Origins      []string // of the host
	IsOldVersion bool     // it is not the one in force
	RawFileURL   string   // where all of it is
	Rows         []robotsLineRow
	Versions     []robotsVersionRow
	IsCompared   bool
	DiffRows     []robotsDiffRow // from the version that it was compared with
}

// A robotsVersionRow is one that the origin had.
type robotsVersionRow struct {
	api.RobotsVersion
	IsShown bool
	ShowURL string // shows it
	DiffURL string // shows what it changed; empty: the one before is not kept
}

// robotsVersionRows returns the versions of a file, the newest first.
func robotsVersionRows(file *api.RobotsFile) (list []robotsVersionRow) {
	for i, fileVersion := range file.History {
		q := url.Values{"origin": {file.Origin}, "version": {fileVersion.SHA256}}
		v := robotsVersionRow{RobotsVersion: fileVersion, IsShown: fileVersion.SHA256 == file.SHA256, ShowURL: queryWithChanges(q)}
		if i+1 < len(file.History) {
			v.DiffURL = queryWithChanges(q, "against", file.History[i+1].SHA256)
		}
		list = append(list, v)
	}
	return list
}

// A robotsLineRow is a line of a robots.txt, or lines that are left out.
type robotsLineRow struct {
	Line         int
	Text         string
	Mark         string // decides, loses or group
	Note         string // on the mark
	SkippedLines int    // lines that are left out here
}

// loadRobotsView returns the robots.txt to show with a host: of the origin that is asked
// for, or that of the URL that is explained, or of the first.
func (s *webUI) loadRobotsView(r *http.Request, project string, h *hostView) (*robotsView, error) {
	q := r.URL.Query()
	v := &robotsView{}
	if h.Detail != nil {
		v.Origins = h.Detail.Origins
	}
	origin := q.Get("origin")
	if origin == "" && h.Explanation != nil {
		if u, err := decorum.ParseURL(h.Explanation.URL); err == nil {
			origin = u.Origin().String()
		}
	}
	if origin == "" && len(v.Origins) > 0 {
		origin = v.Origins[0]
	}
	if origin == "" {
		return nil, nil
	}
	file, err := s.daemon.RobotsFile(r.Context(), project, origin, q.Get("version"))
	if err != nil {
		if isNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	v.RobotsFile = file
	v.IsOldVersion = len(file.History) > 0 && file.History[0].SHA256 != file.SHA256
	v.RawFileURL = "/projects/" + url.PathEscape(project) + "/robots.txt" + queryWithChanges(url.Values{}, "origin", origin, "version", q.Get("version"))
	marks := map[int]robotsLineMark{}
	if h.Explanation != nil && h.Explanation.Robots.SHA256 == file.SHA256 {
		marks = robotsLineMarks(&h.Explanation.Robots)
	}
	v.Rows, v.Versions = robotsLineRows(file.Text, marks), robotsVersionRows(file)
	if against := q.Get("against"); against != "" {
		old, err := s.daemon.RobotsFile(r.Context(), project, origin, against)
		if err != nil {
			return nil, err
		}
		v.IsCompared, v.DiffRows = true, robotsDiffRows(api.DiffRobotsLines(old, file))
	}
	return v, nil
}

// serveRawRobots serves a robots.txt as plain text.
func (s *webUI) serveRawRobots(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	file, err := s.daemon.RobotsFile(r.Context(), r.PathValue("project"), q.Get("origin"), q.Get("version"))
	if err != nil {
		s.renderPage(w, r, problemView(err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, file.Text) // a browser that has gone away is nobody's error
}

// A robotsDiffRow is a line of the diff of two versions, or lines that are left out.
type robotsDiffRow struct {
	api.RobotsDiffLine
	SkippedLines     int    // lines that are left out here
	SkippedLinesNote string // they are
}

// robotsDiffRows returns the lines to show of a diff: those that differ, as many as
// there is room for, and what is around them.
func robotsDiffRows(d *api.RobotsTextDiff) (rows []robotsDiffRow) {
	shown := make([]bool, len(d.Lines))
	for i, line := range d.Lines {
		if line.Kind == api.LineSame {
			continue
		}
		for j := max(0, i-contextLines); j <= min(i+contextLines, len(shown)-1); j++ {
			shown[j] = true
		}
	}
	for i, line := range d.Lines {
		switch last := len(rows) - 1; {
		case shown[i] && len(rows) < maxShownLines:
			line.Text = truncateLine(line.Text)
			rows = append(rows, robotsDiffRow{RobotsDiffLine: line})
		case len(rows) >= maxShownLines:
			return append(rows, robotsDiffRow{SkippedLines: len(d.Lines) - i + d.UncomparedLines, SkippedLinesNote: "lines are left out"})
		case last >= 0 && rows[last].SkippedLines > 0:
			rows[last].SkippedLines++
		default:
			rows = append(rows, robotsDiffRow{SkippedLines: 1, SkippedLinesNote: "lines are the same"})
		}
	}
	if d.UncomparedLines > 0 {
		rows = append(rows, robotsDiffRow{SkippedLines: d.UncomparedLines, SkippedLinesNote: "lines are not compared"})
	}
	return rows
}

// truncateLine returns what is shown of a line.
func truncateLine(line string) string {
	if len(line) <= maxLineBytes {
		return line
	}
	return strings.ToValidUTF8(line[:maxLineBytes], "") + "…"
}

// A robotsLineMark is what a line has to do with the URL that is explained.
type robotsLineMark struct{ kind, note string }

// robotsLineMarks returns the lines that have a part in a verdict, by number.
func robotsLineMarks(r *api.ExplainedRules) map[int]robotsLineMark {
	marks := map[int]robotsLineMark{}
	for _, line := range r.GroupAgentLineNumbers {
		marks[line] = robotsLineMark{"group", "the group that speaks to this crawler"}
	}
	for _, m := range r.Matches {
		if len(marks) < maxMarks && m.Line != r.Line {
			reason := cmp.Or(lostRuleReasons[m.LosingReason], "another rule goes first")
			marks[m.Line] = robotsLineMark{"loses", "matches, but loses: " + reason}
		}
	}
	if r.Line > 0 {
		kind := "blocks the URL"
		if r.Allowed {
			kind = "allows the URL"
		}
		marks[r.Line] = robotsLineMark{"decides", "decides: " + kind}
	}
	return marks
}

// lostRuleReasons say why a rule does not decide.
var lostRuleReasons = map[robots.LosingReason]string{
	robots.LostShorter:  "a longer rule matches",
	robots.LostTie:      "as long, and allow wins a tie",
	robots.LostRepeated: "it stands there twice",
}

// robotsLineRows returns the lines of a file to show: those at its beginning, those that
// are marked, and what is around these.
func robotsLineRows(text string, marks map[int]robotsLineMark) (rows []robotsLineRow) {
	shown := map[int]bool{}
	for n := range marks {
		for i := n - contextLines; i <= n+contextLines; i++ {
			shown[i] = true
		}
	}
	for n, line := range robots.Lines(text) {
		if n > maxShownLines && !shown[n] {
			if last := &rows[len(rows)-1]; last.SkippedLines > 0 {
				last.SkippedLines++
			} else {
				rows = append(rows, robotsLineRow{SkippedLines: 1})
			}
			continue
		}
		m := marks[n]
		rows = append(rows, robotsLineRow{Line: n, Text: truncateLine(line), Mark: m.kind, Note: m.note})
	}
	return rows
}
