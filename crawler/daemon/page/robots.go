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

// The limits of the view of a robots.txt. The raw file has the whole text.
const (
	maxShownLines = 1000 // lines shown from the beginning
	contextLines  = 5    // lines shown before and after each marked line
	maxMarks      = 100  // marked lines
	maxLineBytes  = 1000 // bytes shown of a line
)

// A robotsView is the view of a version of a robots.txt, line by line.
type robotsView struct {
	*api.RobotsFile
	Origins      []string // of the host
	IsOldVersion bool     // the version is not the one in force
	RawFileURL   string   // the link to the whole text
	Rows         []robotsLineRow
	Versions     []robotsVersionRow
	IsCompared   bool            // DiffRows is set
	DiffRows     []robotsDiffRow // the difference from the version that the query names
}

// A robotsVersionRow is a row in the table of versions of a robots.txt.
type robotsVersionRow struct {
	api.RobotsVersion
	IsShown bool   // the page shows this version
	ShowURL string // the link that shows the version
	DiffURL string // the link that shows what the version changed; empty: the version before it is not kept
}

// robotsVersionRows returns a row for each version of a file, the newest first.
func robotsVersionRows(file *api.RobotsFile) (list []robotsVersionRow) {
	for i, fileVersion := range file.History {
		q := url.Values{"origin": {file.Origin}, "version": {fileVersion.SHA256}}
		v := robotsVersionRow{RobotsVersion: fileVersion, IsShown: fileVersion.SHA256 == file.SHA256,
			ShowURL: queryWithChanges(q)}
		if i+1 < len(file.History) {
			v.DiffURL = queryWithChanges(q, "against", file.History[i+1].SHA256)
		}
		list = append(list, v)
	}
	return list
}

// A robotsLineRow is a line of a robots.txt, or a gap of lines that are not shown.
type robotsLineRow struct {
	Line         int // its number, from 1; 0: a gap
	Text         string
	Mark         string // decides, loses or group; empty: the line is not marked
	Note         string // the reason of the mark
	SkippedLines int    // of a gap: how many lines are not shown
}

// loadRobotsView returns the view of a robots.txt of a host: of the origin in the query, else of the
// origin of the explained URL, else of the host's first origin. It returns nil if there is no
// robots.txt to show.
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
	v.RawFileURL = "/projects/" + url.PathEscape(project) + "/robots.txt" + queryWithChanges(url.Values{}, "origin",
		origin, "version", q.Get("version"))
	// Mark lines only in the version by which the URL is explained.
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
	io.WriteString(w, file.Text) // it fails only if the browser has gone
}

// A robotsDiffRow is a line of the difference of two versions, or a gap of lines that are not shown.
type robotsDiffRow struct {
	api.RobotsDiffLine
	SkippedLines     int    // of a gap: how many lines are not shown
	SkippedLinesNote string // of a gap: why not
}

// robotsDiffRows returns the rows of a difference: the lines that differ and contextLines around
// each, at most maxShownLines.
func robotsDiffRows(d *api.RobotsTextDiff) (rows []robotsDiffRow) {
	// Choose the lines near a difference.
	shown := make([]bool, len(d.Lines))
	for i, line := range d.Lines {
		if line.Kind == api.LineSame {
			continue
		}
		for j := max(0, i-contextLines); j <= min(i+contextLines, len(shown)-1); j++ {
			shown[j] = true
		}
	}
	// Show them, and count the others in gaps.
	for i, line := range d.Lines {
		switch last := len(rows) - 1; {
		case shown[i] && len(rows) < maxShownLines:
			line.Text = truncateLine(line.Text)
			rows = append(rows, robotsDiffRow{RobotsDiffLine: line})
		case len(rows) >= maxShownLines:
			return append(rows, robotsDiffRow{SkippedLines: len(d.Lines) - i + d.UncomparedLines,
				SkippedLinesNote: "lines are left out"})
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

// truncateLine returns the first maxLineBytes of a line, with … if it is longer.
func truncateLine(line string) string {
	if len(line) <= maxLineBytes {
		return line
	}
	return strings.ToValidUTF8(line[:maxLineBytes], "") + "…"
}

// A robotsLineMark says what a line means for the explained URL: robotsLineRow.Mark and Note.
type robotsLineMark struct{ kind, note string }

// robotsLineMarks returns the marks of the lines that contribute to a verdict, by line number.
func robotsLineMarks(r *api.ExplainedRules) map[int]robotsLineMark {
	marks := map[int]robotsLineMark{}
	for _, line := range r.GroupAgentLineNumbers {
		marks[line] = robotsLineMark{"group", "the group for this crawler"}
	}
	for _, m := range r.Matches {
		if len(marks) < maxMarks && m.Line != r.Line {
			reason := cmp.Or(lostRuleReasons[m.LosingReason], "another rule takes precedence")
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

// lostRuleReasons holds the reasons why a rule that matches does not decide.
var lostRuleReasons = map[robots.LosingReason]string{
	robots.LostShorter:  "a longer rule matches",
	robots.LostTie:      "the deciding rule is as long, and allow wins a tie",
	robots.LostRepeated: "an equal rule precedes it",
}

// robotsLineRows returns the rows of a file: its first maxShownLines lines, the marked lines, and
// contextLines around each of these.
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
