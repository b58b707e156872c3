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

// A verdictChecker derives verdicts again from the robots.txt files of a ledger, and compares them with
// the recorded ones.
type verdictChecker struct {
	robotsDir    string          // directory of the robots.txt files
	intactByHash map[string]bool // by SHA-256: whether the file exists and has that hash
	fileFindings []Finding       // faults of files, one for each file

	agent           robots.Agent                        // agent of the current run
	robotsOptions   robots.ParseOptions                 // how the current run parses robots.txt
	purposes        []string                            // purposes of the current run
	hasSeenRunStart bool                                // whether the three are set
	rulesByHash     recent.Map[string, robotsFileRules] // rules of the files for the current run
}

// cachedRules is how many compiled files stay in memory: at least so many, at most twice as many.
const cachedRules = 500

// maxRobotsFileBytes is the largest robots.txt that is read, in bytes. A crawl stores at most
// robots.MaxFileBytes.
const maxRobotsFileBytes = 16 << 20

// startRun sets agent, dialect and purposes to those of a run. It returns an error if they are invalid.
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
	j.robotsOptions = robots.ParseOptions{Dialect: dialect, NoExtensions: !run.RobotsExtensions,
		MaxBytes: robots.MaxFileBytes}
	j.rulesByHash = recent.Map[string, robotsFileRules]{}
	return nil
}

// robotsAgent returns the agent of a run, by which rules are chosen.
func (r *RunStart) robotsAgent() (robots.Agent, error) {
	if !r.IgnoresStarRules {
		return robots.NewAgent(r.ProductToken, r.FallbackTokens...)
	}
	// Only presets of the Yandex dialect ignore rules for "*".
	a, _ := robots.PresetOrNewAgent(robots.Yandex, r.ProductToken)
	if !a.IgnoresStarRules() || !slices.Equal(a.FallbackTokens(), r.FallbackTokens) {
		return a, fmt.Errorf("says that rules for * do not bind %q, but they bind that agent", r.ProductToken)
	}
	return a, nil
}

// checkRequest returns the fault of the verdict of a request for u, or an empty string.
func (j *verdictChecker) checkRequest(u decorum.URL, q *Request) string {
	if q.Kind == KindRobotsTXT {
		if q.RobotsVerdict != nil || q.Referrer == "" && u.String() != q.Origin+"/robots.txt" {
			return "it is not the robots.txt of " + q.Origin
		}
		return ""
	}
	switch {
	case q.Origin != u.Origin().String():
		return fmt.Sprintf("the robots.txt of %s does not apply to it", q.Origin)
	case q.RobotsVerdict == nil:
		return "it was sent without a verdict"
	case !q.RobotsVerdict.Allowed:
		return "it was sent although the verdict disallows it"
	}
	return j.checkVerdict(u, q.RobotsVerdict)
}

// checkVerdict returns how a verdict for u differs from the one that its robots.txt gives, or an empty
// string.
func (j *verdictChecker) checkVerdict(u decorum.URL, got *RobotsVerdict) string {
	rules, reason := j.findRules(got)
	if reason != "" {
		return reason
	}
	want := NewRobotsVerdict(aiuse.Check(rules.access, rules.usage, u, j.purposes), gate.FetchSummary{})
	if want.Allowed != got.Allowed || want.Rule != got.Rule ||
		want.RuleLine != got.RuleLine || want.Group != got.Group ||
		want.DisallowedForMainRobot != got.DisallowedForMainRobot {
		return fmt.Sprintf("its verdict is %s, but its robots.txt says %s", got.describe(), want.describe())
	}
	return ""
}

// describe returns a verdict in words, such as "yes (line 3, allow: /a, group *)".
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

// robotsFileRules are the rules of a robots.txt for the run's agent.
type robotsFileRules struct {
	access *robots.Rules // which URLs it may fetch, and how often
	usage  *aiuse.Rules  // for which purposes it may use the content
}

// findRules returns the rules on which a verdict rests, or the reason why they are unavailable.
func (j *verdictChecker) findRules(v *RobotsVerdict) (rules robotsFileRules, reason string) {
	if !j.hasSeenRunStart {
		return robotsFileRules{}, "its run states no valid agent and dialect"
	}
	switch v.FetchOutcome {
	// Without a robots.txt everything is allowed, and no file can prove it.
	case gate.OutcomeAllowAll.String():
		if v.FileSHA256 != "" {
			return robotsFileRules{}, "it names a robots.txt, and says that the origin has none"
		}
		return robotsFileRules{access: robots.AllowAll()}, ""
	case gate.OutcomeRules.String(), gate.OutcomeCachedRules.String():
	default:
		return robotsFileRules{}, fmt.Sprintf("its outcome of robots.txt is %q, which allows no verdict",
			v.FetchOutcome)
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

// readVerifiedRobotsFile returns the robots.txt with a hash, or the reason why it is unavailable. A
// missing or changed file is a finding, once.
func (j *verdictChecker) readVerifiedRobotsFile(hash string) (body []byte, reason string) {
	intact, seen := j.intactByHash[hash]
	if seen && !intact {
		return nil, "its robots.txt is missing or was changed"
	}
	// The hash becomes part of a file name: a stranger may have written the record.
	if _, err := hex.DecodeString(hash); err != nil || len(hash) != 2*sha256.Size {
		return nil, fmt.Sprintf("%q is not a SHA-256", hash)
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

// robotsDelay returns the delay that the robots.txt of a verdict demands at a time, or 0 if that is
// unknown. If the delay depends on the hour, a request that was permitted one minute before may be
// sent now, so it returns the lower one of both times.
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
