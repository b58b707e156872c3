package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A question is a line of what decorum robots batch reads.
type question struct {
	Robots     *string
	Base64     []byte `json:"robots_base64"`
	Agent      *string
	URL        *string
	Dialect    *string
	Extensions *bool
}

// An answer is a line of what decorum robots batch writes. What is nil is
// written as null.
type answer struct {
	Allowed    *bool    `json:"allowed"`
	Rule       *string  `json:"rule"`
	Line       *int     `json:"line"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	Sitemaps   []string `json:"sitemaps"`
	Host       *string  `json:"host"`
	CleanURL   *string  `json:"clean_url"`
	Error      string   `json:"error,omitempty"`
}

// A clerk answers questions. Many are about the same files, so it keeps those
// it has read. It is not safe for concurrent use.
type clerk struct {
	dialect robots.Dialect // of questions that name none
	agent   string         // of questions that name none
	folders map[source]*folder
	held    int // about how many bytes the folders take
}

// clerkBytes is how much a clerk keeps, before it clears its desk.
const clerkBytes = 128 << 20

// A source is a file and how it is to be read.
type source struct {
	text       string
	dialect    robots.Dialect
	extensions bool
}

// A folder is what a clerk knows of a file.
type folder struct {
	file     *robots.File
	cleaner  *robots.Cleaner
	host     *string // nil: the file names none
	sitemaps []string
	rules    map[string]*robots.Rules // by agent
}

func newClerk(d robots.Dialect, agent string) *clerk {
	return &clerk{dialect: d, agent: agent, folders: make(map[source]*folder)}
}

// answer answers the question of one line. What is wrong with it is said in
// the answer, beside all that can be answered.
func (c *clerk) answer(line []byte) answer {
	if !utf8.Valid(line) { // or json would put other bytes in their place
		return answer{Error: "not a question: the line is not UTF-8; give such a file as robots_base64"}
	}
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{Error: fmt.Sprintf("not a question: %v", err)}
	}
	s, err := c.source(&q)
	if err != nil {
		return answer{Error: err.Error()}
	}
	agent := c.agent
	if q.Agent != nil {
		agent = *q.Agent
	}
	f := c.folder(s)
	rules := c.rules(f, s, agent)
	a := answer{Sitemaps: f.sitemaps, Host: f.host}
	if delay, ok := rules.CrawlDelay(); ok {
		a.CrawlDelay = new(delay.Seconds())
	}
	if q.URL != nil {
		a.setVerdict(*q.URL, rules, f.cleaner, s.dialect)
	}
	return a
}

// setVerdict adds what the rules say of a URL.
func (a *answer) setVerdict(url string, rules *robots.Rules, cleaner *robots.Cleaner, d robots.Dialect) {
	u, err := decorum.ParseURL(url)
	switch {
	case err == nil:
		a.CleanURL = new(cleaner.Clean(u).String())
	case d != robots.GoogleOSS:
		a.Error = fmt.Sprintf("%q is not a URL that robots.txt speaks of: expected https://host/path", url)
		return
	}
	v := rules.CheckRaw(url)
	a.Allowed = &v.Allowed
	if v.Rule != "" {
		a.Rule, a.Line = &v.Rule, &v.Line
	}
}

func (c *clerk) source(q *question) (source, error) {
	s := source{dialect: c.dialect, extensions: q.Extensions == nil || *q.Extensions}
	if q.Dialect != nil {
		var err error
		if s.dialect, err = robots.ParseDialect(*q.Dialect); err != nil {
			return source{}, fmt.Errorf("dialect: %w", err)
		}
	}
	switch {
	case q.Robots != nil && q.Base64 != nil:
		return source{}, errors.New("both robots and robots_base64 are given")
	case q.Robots != nil:
		s.text = *q.Robots
	case q.Base64 != nil:
		s.text = string(q.Base64)
	default:
		return source{}, errors.New("neither robots nor robots_base64 is given")
	}
	return s, nil
}

// folder returns what the clerk knows of a file; it reads it if it is new.
func (c *clerk) folder(s source) *folder {
	if f := c.folders[s]; f != nil {
		return f
	}
	c.keep(5 * len(s.text)) // the text, its lines and its sitemaps
	file := robots.Options{Dialect: s.dialect, NoExtensions: !s.extensions}.Parse([]byte(s.text))
	f := &folder{file: file, cleaner: file.Cleaner(), sitemaps: []string{}, rules: make(map[string]*robots.Rules)}
	if host, ok := file.Host(); ok {
		f.host = &host
	}
	for _, u := range file.Sitemaps() {
		f.sitemaps = append(f.sitemaps, u.String())
	}
	c.folders[s] = f
	return f
}

// rules returns what the file of f says to an agent.
func (c *clerk) rules(f *folder, s source, agent string) *robots.Rules {
	r := f.rules[agent]
	if r == nil {
		c.keep(10*len(s.text) + len(agent)) // compiled rules are larger than their text
		r = f.file.For(robots.Named(agent))
		f.rules[agent] = r
	}
	return r
}

// keep makes room for about so many bytes and what goes with them.
func (c *clerk) keep(bytes int) {
	const around = 1 << 10
	if c.held += bytes + around; c.held > clerkBytes {
		clear(c.folders)
		c.held = bytes + around
	}
}
