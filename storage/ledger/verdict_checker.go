package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/internal/recent"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/aiuse"
	"github.com/decorum-crawler/decorum/robots/gate"
)

// A verdictChecker derives verdicts again, from the robots.txt files beside a ledger.
type verdictChecker struct {
	robotsDir    string
	intactByHash map[string]bool // by hash: whether it is there, as it was
	fileFindings []Finding       // what is wrong with files

	agent           robots.Agent
	robotsOptions   robots.ParseOptions
	purposes        []string
	hasSeenRunStart bool                                // the three are: a run has begun
	rulesByHash     recent.Map[string, robotsFileRules] // of files, read as they say
}

// cachedRules is how many files are held in memory as rules at least, twice as many at most.
const cachedRules = 500

// maxRobotsFileBytes is how many bytes of a robots.txt are read: a crawl keeps at most
// robots.MaxFileBytes.
const maxRobotsFileBytes = 16 << 20

// startRun has files read as a run does.
func (j *verdictChecker) startRun(run *RunStart) error {
	agent, err := run.robotsAgent()
	if err != nil {
		return err
	}
	dialect, err := robots.ParseDialect(run.RobotsDialect)
	if err != nil {
		return fmt.Errorf("dialect: %w", err)
	}
	j.agent, j.purposes, j.hasSeenRunStart = agent, run.Purposes, true
	j.robotsOptions = robots.ParseOptions{Dialect: dialect, NoExtensions: !run.RobotsExtensions, MaxBytes: robots.MaxFileBytes}
	j.rulesByHash = recent.Map[string, robotsFileRules]{}
	return nil
}

// robotsAgent returns whom the run's robots.txt files speak to.
func (r *RunStart) robotsAgent() (robots.Agent, error) {
	if !r.IgnoresStarRules {
		return robots.NewAgent(r.ProductToken, r.FallbackTokens...)
	}
	a, _ := robots.PresetOrNewAgent(robots.Yandex, r.ProductToken) // whose presets alone ignore them
	if !a.IgnoresStarRules() || !slices.Equal(a.FallbackTokens(), r.FallbackTokens) {
		return a, fmt.Errorf("says that rules for * do not bind %q, which is no such agent", r.ProductToken)
	}
	return a, nil
}

// checkRequest says what is wrong with the verdict of a request to u; empty: nothing.
func (j *verdictChecker) checkRequest(u decorum.URL, q *Request) string {
	if q.Kind == KindRobotsTXT {
		if q.RobotsVerdict != nil || q.Referrer == "" && u.String() != q.Origin+"/robots.txt" {
			return "it is no robots.txt of " + q.Origin
		}
		return ""
	}
	switch {
	case q.Origin != u.Origin().String():
		return fmt.Sprintf("the robots.txt of %s does not speak for it", q.Origin)
	case q.RobotsVerdict == nil:
		return "it was sent without a verdict"
	case !q.RobotsVerdict.Allowed:
		return "it was sent, and the verdict disallows it"
	}
	return j.checkVerdict(u, q.RobotsVerdict)
}

// checkVerdict says in what a verdict is not the one that is derived from its file;
// empty: in nothing.
func (j *verdictChecker) checkVerdict(u decorum.URL, got *RobotsVerdict) string {
	rules, reason := j.findRules(got)
	if reason != "" {
		return reason
	}
	want := NewRobotsVerdict(aiuse.Check(rules.access, rules.usage, u, j.purposes), gate.FetchSummary{})
	if want.Allowed != got.Allowed || want.Rule != got.Rule || want.RuleLine != got.RuleLine || want.Group != got.Group ||
		want.DisallowedForMainRobot != got.DisallowedForMainRobot {
		return fmt.Sprintf("its verdict is %s, and that of its robots.txt is %s", got.describe(), want.describe())
	}
	return ""
}

// describe says a verdict.
func (v *RobotsVerdict) describe() string {
	s := "no"
	if v.Allowed {
		s = "yes"
	}
	if v.DisallowedForMainRobot {
		s += ", not for indexing"
	}
	if v.Rule == "" {
		return s + " (no rule)"
	}
	return fmt.Sprintf("%s (line %d, %s, group %s)", s, v.RuleLine, v.Rule, v.Group)
}

// robotsFileRules are what a robots.txt says to the run's agent.
type robotsFileRules struct {
	access *robots.Rules
	usage  *aiuse.Rules
}

// findRules returns the rules that a verdict rests on, or why there are none.
func (j *verdictChecker) findRules(v *RobotsVerdict) (rules robotsFileRules, reason string) {
	if !j.hasSeenRunStart {
		return robotsFileRules{}, "it is not known how its run reads robots.txt"
	}
	switch v.FetchOutcome {
	case gate.OutcomeAllowAll.String():
		if v.FileSHA256 != "" {
			return robotsFileRules{}, "it names a robots.txt, and says that there is none"
		}
		return robotsFileRules{access: robots.AllowAll()}, ""
	case gate.OutcomeRules.String(), gate.OutcomeCachedRules.String():
	default:
		return robotsFileRules{}, fmt.Sprintf("its robots.txt was %q, by which nothing can be judged", v.FetchOutcome)
	}
	if rules, ok := j.rulesByHash.Get(v.FileSHA256, cachedRules); ok {
		return rules, ""
	}
	body, reason := j.readVerifiedRobotsFile(v.FileSHA256)
	if reason != "" {
		return robotsFileRules{}, reason
	}
	file := j.robotsOptions.Parse(body)
	rules = robotsFileRules{file.RulesFor(j.agent), aiuse.Compile(file, j.agent)}
	j.rulesByHash.Put(v.FileSHA256, rules, cachedRules)
	return rules, ""
}

// readVerifiedRobotsFile returns the file with a hash. What is wrong with it is a finding, once.
func (j *verdictChecker) readVerifiedRobotsFile(hash string) (body []byte, reason string) {
	intact, seen := j.intactByHash[hash]
	if seen && !intact {
		return nil, "its robots.txt is missing or was changed"
	}
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != 2*sha256.Size {
		return nil, fmt.Sprintf("%q is no SHA-256 of a robots.txt", hash)
	}
	name := robotsFilePath(j.robotsDir, hash)
	body, err := readRegularFile(j.robotsDir, robotsFilePath("", hash), maxRobotsFileBytes)
	sum := sha256.Sum256(body)
	j.intactByHash[hash] = err == nil && hex.EncodeToString(sum[:]) == hash
	if j.intactByHash[hash] {
		return body, ""
	}
	message := "does not have the SHA-256 that is its name: it was changed"
	if err != nil {
		message = fmt.Sprintf("cannot be read: %v", err)
	}
	j.fileFindings = append(j.fileFindings, Finding{File: name, Message: message})
	return nil, "its robots.txt is missing or was changed"
}

// robotsDelay returns the rest that the file of a verdict asks for at a moment, 0 if
// that is not known. Where it differs by the hour, a request that was permitted in
// the minute before may have been sent in this one.
func (j *verdictChecker) robotsDelay(v *RobotsVerdict, at time.Time) time.Duration {
	if v == nil {
		return 0
	}
	rules, reason := j.findRules(v)
	if reason != "" {
		return 0
	}
	return min(rules.access.DelayAt(at), rules.access.DelayAt(at.Add(-time.Minute)))
}
