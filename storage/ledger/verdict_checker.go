package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
)

// A verdictChecker derives verdicts again, from the robots.txt files beside a ledger.
type verdictChecker struct {
	dir      string
	files    map[string]bool // by hash: whether it is there, as it was
	findings []Finding       // what is wrong with files

	agent    robots.Agent
	options  robots.Options
	purposes []string
	known    bool                     // the three are: a run has begun
	rules    map[string]*robots.Rules // of files, read as they say
}

// maxCachedRules is how many files are held in memory as rules.
const maxCachedRules = 1000

// maxRobotsFile is how many bytes of a robots.txt are read: a crawl keeps at most
// robots.Limit.
const maxRobotsFile = 16 << 20

func newVerdictChecker(dir string) verdictChecker {
	return verdictChecker{dir: dir, files: map[string]bool{}, rules: map[string]*robots.Rules{}}
}

// begin has files read as a run does.
func (j *verdictChecker) begin(run *Run) error {
	agent, err := run.agent()
	if err != nil {
		return err
	}
	dialect, err := robots.ParseDialect(run.Dialect)
	if err != nil {
		return fmt.Errorf("dialect: %w", err)
	}
	j.agent, j.purposes, j.known = agent, run.Purposes, true
	j.options = robots.Options{Dialect: dialect, NoExtensions: !run.Extensions, Limit: robots.Limit}
	clear(j.rules)
	return nil
}

// agent returns whom the run's robots.txt files speak to.
func (r *Run) agent() (robots.Agent, error) {
	if !r.NamedOnly {
		return robots.NewAgent(r.Agent, r.Wider...)
	}
	a, _ := robots.Preset(r.Agent)
	if !a.NamedOnly() || !slices.Equal(a.Wider(), r.Wider) {
		return a, fmt.Errorf("says that rules for * do not bind %q, which is no such agent", r.Agent)
	}
	return a, nil
}

// request says what is wrong with the verdict of a request to u; empty: nothing.
func (j *verdictChecker) request(u decorum.URL, q *Request) string {
	if q.Kind == RobotsTXT {
		if q.Robots != nil || q.Referrer == "" && u.String() != q.Origin+"/robots.txt" {
			return "it is no robots.txt of " + q.Origin
		}
		return ""
	}
	switch {
	case q.Origin != u.Origin().String():
		return fmt.Sprintf("the robots.txt of %s does not speak for it", q.Origin)
	case q.Robots == nil:
		return "it was sent without a verdict"
	case !q.Robots.Allowed:
		return "it was sent, and the verdict disallows it"
	}
	return j.verdict(u, q.Robots)
}

// verdict says in what a verdict is not the one that is derived from its file;
// empty: in nothing.
func (j *verdictChecker) verdict(u decorum.URL, has *Verdict) string {
	rules, why := j.find(has)
	if why != "" {
		return why
	}
	want := NewVerdict(rules.CheckFor(u, j.purposes), robots.Snapshot{})
	if want.Allowed != has.Allowed || want.Rule != has.Rule || want.RuleLine != has.RuleLine || want.Group != has.Group ||
		want.NotForIndexing != has.NotForIndexing {
		return fmt.Sprintf("its verdict is %s, and that of its robots.txt is %s", has.words(), want.words())
	}
	return ""
}

// words says a verdict.
func (v *Verdict) words() string {
	s := "no"
	if v.Allowed {
		s = "yes"
	}
	if v.NotForIndexing {
		s += ", not for indexing"
	}
	if v.Rule == "" {
		return s + " (no rule)"
	}
	return fmt.Sprintf("%s (line %d, %s, group %s)", s, v.RuleLine, v.Rule, v.Group)
}

// find returns the rules that a verdict rests on, or why there are none.
func (j *verdictChecker) find(v *Verdict) (rules *robots.Rules, why string) {
	if !j.known {
		return nil, "it is not known how its run reads robots.txt"
	}
	switch v.Outcome {
	case robots.AllowedAll.String():
		if v.SHA256 != "" {
			return nil, "it names a robots.txt, and says that there is none"
		}
		return robots.AllowAll(), ""
	case robots.RulesKnown.String(), robots.CachedRules.String():
	default:
		return nil, fmt.Sprintf("its robots.txt was %q, by which nothing can be judged", v.Outcome)
	}
	if rules := j.rules[v.SHA256]; rules != nil {
		return rules, ""
	}
	body, why := j.read(v.SHA256)
	if why != "" {
		return nil, why
	}
	if len(j.rules) >= maxCachedRules {
		clear(j.rules)
	}
	rules = j.options.Parse(body).For(j.agent)
	j.rules[v.SHA256] = rules
	return rules, ""
}

// read returns the file with a hash. What is wrong with it is a finding, once.
func (j *verdictChecker) read(hash string) (body []byte, why string) {
	good, seen := j.files[hash]
	if seen && !good {
		return nil, "its robots.txt is missing or was changed"
	}
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != 2*sha256.Size {
		return nil, fmt.Sprintf("%q is no SHA-256 of a robots.txt", hash)
	}
	name := robotsFile(j.dir, hash)
	body, err := readRegular(j.dir, robotsFile("", hash), maxRobotsFile)
	sum := sha256.Sum256(body)
	j.files[hash] = err == nil && hex.EncodeToString(sum[:]) == hash
	if j.files[hash] {
		return body, ""
	}
	what := "does not have the SHA-256 that is its name: it was changed"
	if err != nil {
		what = fmt.Sprintf("cannot be read: %v", err)
	}
	j.findings = append(j.findings, Finding{File: name, What: what})
	return nil, "its robots.txt is missing or was changed"
}

// pause returns the rest that the file of a verdict asks for at a moment, 0 if
// that is not known. Where it differs by the hour, a request that was permitted in
// the minute before may have been sent in this one.
func (j *verdictChecker) pause(v *Verdict, at time.Time) time.Duration {
	if v == nil {
		return 0
	}
	rules, why := j.find(v)
	if why != "" {
		return 0
	}
	return min(rules.Pause(at), rules.Pause(at.Add(-time.Minute)))
}
