package page

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
	"github.com/decorum-crawler/decorum/robots"
)

// Bounds of what is shown of a robots.txt. What they leave out is in the raw file.
const (
	mostLines   = 1000 // from the beginning
	nearLines   = 5    // around a line that is marked
	mostMarks   = 100
	longestLine = 1000 // bytes
)

// A robotsView is a robots.txt as it was fetched, line by line.
type robotsView struct {
	*api.RobotsFile
	Origins  []string // of the host
	Old      bool     // it is not the one in force
	Raw      string   // where all of it is
	Rows     []row
	Versions []version
	Compared bool
	Diff     []diffRow // from the version that it was compared with
}

// A version is one that the origin had.
type version struct {
	api.RobotsVersion
	Shown bool
	URL   string // shows it
	Diff  string // shows what it changed; empty: the one before is not kept
}

// versionsOf returns the versions of a file, the newest first.
func versionsOf(file *api.RobotsFile) (list []version) {
	for i, one := range file.History {
		q := url.Values{"origin": {file.Origin}, "version": {one.SHA256}}
		v := version{RobotsVersion: one, Shown: one.SHA256 == file.SHA256, URL: changed(q)}
		if i+1 < len(file.History) {
			v.Diff = changed(q, "against", file.History[i+1].SHA256)
		}
		list = append(list, v)
	}
	return list
}

// A row is a line of a robots.txt, or lines that are left out.
type row struct {
	Line int
	Text string
	Mark string // decides, loses or group
	Note string // on the mark
	Left int    // lines that are left out here
}

// robotsOf returns the robots.txt to show with a host: of the origin that is asked
// for, or that of the URL that is explained, or of the first.
func (s *site) robotsOf(r *http.Request, project string, h *hostView) (*robotsView, error) {
	q := r.URL.Query()
	v := &robotsView{}
	if h.Host != nil {
		v.Origins = h.Host.Origins
	}
	origin := q.Get("origin")
	if origin == "" && h.Explained != nil {
		origin = originOf(h.Explained.URL)
	}
	if origin == "" && len(v.Origins) > 0 {
		origin = v.Origins[0]
	}
	if origin == "" {
		return nil, nil
	}
	file, err := s.daemon.Robots(r.Context(), project, origin, q.Get("version"))
	if err != nil {
		if isNotFound(err) {
			return nil, nil
		}
		return nil, err
	}
	v.RobotsFile = file
	v.Old = len(file.History) > 0 && file.History[0].SHA256 != file.SHA256
	v.Raw = "/projects/" + url.PathEscape(project) + "/robots.txt" + changed(url.Values{}, "origin", origin, "version", q.Get("version"))
	marks := map[int]mark{}
	if h.Explained != nil && h.Explained.Robots.SHA256 == file.SHA256 {
		marks = marksOf(&h.Explained.Robots)
	}
	v.Rows, v.Versions = layOut(file.Text, marks), versionsOf(file)
	if against := q.Get("against"); against != "" {
		old, err := s.daemon.Robots(r.Context(), project, origin, against)
		if err != nil {
			return nil, err
		}
		v.Compared, v.Diff = true, diffRows(api.DiffRobots(old, file))
	}
	return v, nil
}

// rawRobots serves a robots.txt as plain text.
func (s *site) rawRobots(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	file, err := s.daemon.Robots(r.Context(), r.PathValue("project"), q.Get("origin"), q.Get("version"))
	if err != nil {
		s.show(w, r, problemView(err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, file.Text) // a browser that has gone away is nobody's error
}

// originOf returns the origin of a URL that the crawl has made canonical.
func originOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// A diffRow is a line of the diff of two versions, or lines that are left out.
type diffRow struct {
	api.DiffLine
	Left int    // lines that are left out here
	Why  string // they are
}

// diffRows returns the lines to show of a diff: those that differ, as many as
// there is room for, and what is around them.
func diffRows(d *api.RobotsDiff) (rows []diffRow) {
	near := make([]bool, len(d.Lines))
	for i, line := range d.Lines {
		if line.Kind == api.LineSame {
			continue
		}
		for j := max(0, i-nearLines); j <= min(i+nearLines, len(near)-1); j++ {
			near[j] = true
		}
	}
	for i, line := range d.Lines {
		switch last := len(rows) - 1; {
		case near[i] && len(rows) < mostLines:
			line.Text = shortened(line.Text)
			rows = append(rows, diffRow{DiffLine: line})
		case len(rows) >= mostLines:
			return append(rows, diffRow{Left: len(d.Lines) - i + d.Left, Why: "lines are left out"})
		case last >= 0 && rows[last].Left > 0:
			rows[last].Left++
		default:
			rows = append(rows, diffRow{Left: 1, Why: "lines are the same"})
		}
	}
	if d.Left > 0 {
		rows = append(rows, diffRow{Left: d.Left, Why: "lines are not compared"})
	}
	return rows
}

// shortened returns what is shown of a line.
func shortened(line string) string {
	if len(line) <= longestLine {
		return line
	}
	return strings.ToValidUTF8(line[:longestLine], "") + "…"
}

// A mark is what a line has to do with the URL that is explained.
type mark struct{ kind, note string }

// marksOf returns the lines that have a part in a verdict, by number.
func marksOf(r *api.ExplainedRules) map[int]mark {
	marks := map[int]mark{}
	for _, line := range r.GroupLines {
		marks[line] = mark{"group", "the group that speaks to this crawler"}
	}
	for _, m := range r.Matches {
		if len(marks) < mostMarks && m.Line != r.Line {
			marks[m.Line] = mark{"loses", "matches, but loses: " + lossText(m.Lost)}
		}
	}
	if r.Line > 0 {
		kind := "blocks the URL"
		if r.Allowed {
			kind = "allows the URL"
		}
		marks[r.Line] = mark{"decides", "decides: " + kind}
	}
	return marks
}

func lossText(l robots.Loss) string {
	switch l {
	case robots.Shorter:
		return "a longer rule matches"
	case robots.Tie:
		return "as long, and allow wins a tie"
	case robots.Repeated:
		return "it stands there twice"
	}
	return "another rule goes first"
}

// layOut returns the lines of a file to show: those at its beginning, those that
// are marked, and what is around these.
func layOut(text string, marks map[int]mark) (rows []row) {
	near := map[int]bool{}
	for n := range marks {
		for i := n - nearLines; i <= n+nearLines; i++ {
			near[i] = true
		}
	}
	for n, line := range robots.Lines(text) {
		if n > mostLines && !near[n] {
			if last := &rows[len(rows)-1]; last.Left > 0 {
				last.Left++
			} else {
				rows = append(rows, row{Left: 1})
			}
			continue
		}
		m := marks[n]
		rows = append(rows, row{Line: n, Text: shortened(line), Mark: m.kind, Note: m.note})
	}
	return rows
}
