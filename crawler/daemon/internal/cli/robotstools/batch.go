package robotstools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
)

const robotsBatchHelp = `Answer many questions about robots.txt files, without the network. The questions are
JSON Lines in FILE or on standard input. Each question gets one line of JSON as its
answer, in the same order.

The fields of a question are
  robots         the text of the file; if that is not UTF-8, use robots_base64
  agent          product token, or a well-known crawler (default: --agent)
  url            the URL to evaluate; without it, the answer has only the other fields
  dialect        google, yandex, or google-oss, which is exactly Google's published C++
                 parser and accepts any text as a URL (default: --dialect)
  extensions     false turns off what the google dialect reads but Google does not
                 (default: true)
Other fields are ignored.

The fields of an answer are
  allowed        the verdict; null without url
  rule, line     the deciding rule and its line; null if no rule decides
  crawl_delay_seconds
                 the Crawl-delay for the agent in seconds; null without one
  sitemaps       the sitemaps that the file names, in its order
  host           the value of Host; null without one
  clean_url      the URL in canonical form and after Clean-param; null if it is invalid
  error          what is wrong with the question; absent if it is valid
An invalid line gets an answer with an error, and does not stop the command.

Exit codes: 0 every line has an answer, 1 cannot read the questions or write the
answers, 2 wrong usage.`

const robotsBatchExample = `  printf '%s\n' '{"robots":"User-agent: *\nDisallow: /a","url":"https://example.com/ab"}' | decorum robots batch
  decorum robots batch --dialect google-oss --agent Googlebot questions.jsonl > answers.jsonl`

func newBatchCommand(env *command.Env) *cobra.Command {
	var dialect, agent string
	c := &cobra.Command{
		Use: "batch [FILE]", Short: "Answer questions given as JSON Lines",
		Long: robotsBatchHelp, Example: robotsBatchExample, Args: command.ArgsOrUsageError(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, names []string) error {
			d, err := robots.ParseDialect(dialect)
			if err != nil {
				return usage.Errorf("--dialect: %w", err)
			}
			// Without FILE the questions come from standard input.
			in, err := openFileOrStdin(c.InOrStdin(), append(names, "-")[0], "questions")
			if err != nil {
				return err
			}
			defer in.Close()
			return evaluateBatch(in, env.Stdout, newBatchEvaluator(d, agent))
		},
	}
	c.Flags().StringVar(&dialect, "dialect", "google",
		"read the files of questions without a dialect in `DIALECT`: google, yandex or google-oss")
	c.Flags().StringVar(&agent, "agent", "*", "answer questions without an agent for the agent `NAME`")
	return c
}

// evaluateBatch writes to out one answer for each line of in. It flushes the answers when the read
// buffer is empty, so that a program can also ask one question at a time and wait for its answer.
func evaluateBatch(in io.Reader, out io.Writer, c *batchEvaluator) error {
	r, w := bufio.NewReaderSize(in, 1<<20), bufio.NewWriterSize(out, 1<<16)
	enc := jsonline.NewEncoder(w)
	var buf []byte
	for first := true; ; first = false {
		line, err := plaintext.ReadLine(r, buf[:0])
		buf = line
		if first {
			line = bytes.TrimPrefix(line, []byte(plaintext.ByteOrderMark))
		}
		// An invalid line gets an answer with an error; only errors of reading end the loop.
		var result batchOutputLine
		switch {
		case errors.Is(err, plaintext.ErrLineTooLong):
			result = batchOutputLine{Error: err.Error()}
		case errors.Is(err, io.EOF) && len(line) == 0:
			return w.Flush()
		case err != nil && !errors.Is(err, io.EOF):
			return errors.Join(fmt.Errorf("cannot read the questions: %w", err), w.Flush())
		default:
			result = c.evaluateLine(line)
		}
		err = enc.Encode(result)
		if err == nil && r.Buffered() == 0 {
			err = w.Flush()
		}
		if err != nil {
			return fmt.Errorf("cannot write the answers: %w", err)
		}
	}
}

// A batchInputLine is a question: a line that decorum robots batch reads.
type batchInputLine struct {
	Robots      *string
	RobotsBytes []byte `json:"robots_base64"` // instead of Robots
	Agent       string
	URL         *string // nil: the question has no URL
	Dialect     string
	Extensions  bool
}

// A batchOutputLine is an answer: a line that decorum robots batch writes. Nil fields are written
// as null.
type batchOutputLine struct {
	Allowed    *bool    `json:"allowed"` // nil: the question has no valid URL
	Rule       *string  `json:"rule"`    // nil: no rule decides
	RuleLine   *int     `json:"line"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	Sitemaps   []string `json:"sitemaps"`
	MainMirror *string  `json:"host"`
	CleanURL   *string  `json:"clean_url"`
	Error      string   `json:"error,omitempty"`
}

// A batchEvaluator answers questions. It caches parsed files, because many questions are about the
// same ones. It is not safe for concurrent use.
type batchEvaluator struct {
	defaultDialect robots.Dialect                         // of questions without a dialect
	defaultAgent   string                                 // of questions without an agent
	parsedFiles    map[robotsParseInput]*parsedRobotsFile // the cache
	cachedBytes    int                                    // estimated memory of parsedFiles
}

// maxEvaluatorCacheBytes is the estimated size of the cache at which a batchEvaluator empties it.
const maxEvaluatorCacheBytes = 128 << 20

// A robotsParseInput is the text of a robots.txt file and the options to parse it with.
type robotsParseInput struct {
	text       string
	dialect    robots.Dialect
	extensions bool
}

// A parsedRobotsFile is a file in the cache of a batchEvaluator.
type parsedRobotsFile struct {
	file         *robots.File
	cleaner      *robots.URLCleaner
	mainMirror   *string // nil: the file has no Host
	sitemaps     []string
	rulesByAgent map[string]*robots.Rules // compiled when a question first names the agent
}

func newBatchEvaluator(d robots.Dialect, agent string) *batchEvaluator {
	return &batchEvaluator{defaultDialect: d, defaultAgent: agent,
		parsedFiles: make(map[robotsParseInput]*parsedRobotsFile)}
}

// evaluateLine answers the question in line. If the question is invalid, the answer says why in
// Error, and has the fields that can be answered.
func (c *batchEvaluator) evaluateLine(line []byte) batchOutputLine {
	if !utf8.Valid(line) { // json.Unmarshal would silently replace the invalid bytes
		return batchOutputLine{Error: "not a question: the line is not UTF-8; use robots_base64 for such a file"}
	}
	q := batchInputLine{Agent: c.defaultAgent, Dialect: c.defaultDialect.String(), Extensions: true}
	if err := json.Unmarshal(line, &q); err != nil {
		return batchOutputLine{Error: fmt.Sprintf("not a question: %v", err)}
	}
	s, err := q.parseInput()
	if err != nil {
		return batchOutputLine{Error: err.Error()}
	}
	// The values of the file and the agent need no URL.
	f := c.parsedFile(s)
	rules := c.rulesForAgent(f, s, q.Agent)
	a := batchOutputLine{Sitemaps: f.sitemaps, MainMirror: f.mainMirror}
	if delay, ok := rules.CrawlDelay(); ok {
		a.CrawlDelay = new(delay.Seconds())
	}
	if q.URL != nil {
		a.evaluateURL(*q.URL, rules, f.cleaner, s.dialect)
	}
	return a
}

// evaluateURL sets the fields of a that depend on the URL. Only the dialect google-oss evaluates
// text that is not a URL.
func (a *batchOutputLine) evaluateURL(url string, rules *robots.Rules, cleaner *robots.URLCleaner, d robots.Dialect) {
	u, err := decorum.ParseURL(url)
	switch {
	case err == nil:
		a.CleanURL = new(cleaner.CleanURL(u).String())
	case d != robots.GoogleOSS:
		a.Error = fmt.Sprintf("%q is not a URL that robots.txt applies to: expected https://host/path", url)
		return
	}
	v := rules.CheckRawURL(url)
	a.Allowed = &v.Allowed
	if v.Rule != "" {
		a.Rule, a.RuleLine = &v.Rule, &v.Line
	}
}

// parseInput returns the file that the question is about, and how to parse it.
func (q *batchInputLine) parseInput() (s robotsParseInput, err error) {
	s.extensions = q.Extensions
	if s.dialect, err = robots.ParseDialect(q.Dialect); err != nil {
		return s, fmt.Errorf("dialect: %w", err)
	}
	switch {
	case q.Robots != nil && q.RobotsBytes != nil:
		err = errors.New("both robots and robots_base64 are given")
	case q.Robots != nil:
		s.text = *q.Robots
	case q.RobotsBytes != nil:
		s.text = string(q.RobotsBytes)
	default:
		err = errors.New("neither robots nor robots_base64 is given")
	}
	return s, err
}

// parsedFile returns the parsed file s, from the cache if it is there.
func (c *batchEvaluator) parsedFile(s robotsParseInput) *parsedRobotsFile {
	if f := c.parsedFiles[s]; f != nil {
		return f
	}
	c.reserveCache(5 * len(s.text)) // the text, its lines and its sitemaps
	file := robots.ParseOptions{Dialect: s.dialect, NoExtensions: !s.extensions}.Parse([]byte(s.text))
	f := &parsedRobotsFile{file: file, cleaner: file.URLCleaner(), sitemaps: []string{},
		rulesByAgent: make(map[string]*robots.Rules)}
	if host, ok := file.MainMirror(); ok {
		f.mainMirror = &host
	}
	for _, u := range file.Sitemaps() {
		f.sitemaps = append(f.sitemaps, u.String())
	}
	c.parsedFiles[s] = f
	return f
}

// rulesForAgent returns the rules of the file f for agent, compiled at most once. s is the input
// that f was parsed from.
func (c *batchEvaluator) rulesForAgent(f *parsedRobotsFile, s robotsParseInput, agent string) *robots.Rules {
	r := f.rulesByAgent[agent]
	if r == nil {
		c.reserveCache(10*len(s.text) + len(agent)) // compiled rules are larger than their text
		r = f.file.RulesFor(robots.AgentFromName(agent))
		f.rulesByAgent[agent] = r
	}
	return r
}

// reserveCache adds bytes, and an overhead of 1 KiB, to the estimated size of the cache, and empties
// the cache first if it would exceed maxEvaluatorCacheBytes.
func (c *batchEvaluator) reserveCache(bytes int) {
	const overhead = 1 << 10
	if c.cachedBytes += bytes + overhead; c.cachedBytes > maxEvaluatorCacheBytes {
		clear(c.parsedFiles)
		c.cachedBytes = bytes + overhead
	}
}
