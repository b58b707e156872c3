package robotstools

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/crawler/daemon/internal/cli/command"
	"github.com/decorum-crawler/decorum/internal/jsonline"
	"github.com/decorum-crawler/decorum/internal/plaintext"
	"github.com/decorum-crawler/decorum/internal/usage"
	"github.com/decorum-crawler/decorum/robots"
)

const robotsBatchHelp = `Answer many questions about robots.txt files, without the network. Questions come
as JSON Lines, from FILE or standard input; each line gets one line of JSON for an
answer, in the same order.

A question has
  robots         the file's text, or robots_base64 where that is no UTF-8
  agent          product token or a well-known crawler; --agent if absent
  url            the URL to judge; absent, only the file's own values are told
  dialect        google, yandex, or google-oss: Google's published C++ parser to the
                 letter, which takes any text for a URL; --dialect if absent
  extensions     false: without what the google dialect reads and Google does not
Other fields are ignored.

An answer has
  allowed        the verdict, null without url
  rule, line     what decided, null if no rule did
  crawl_delay_seconds
                 what the file asks of the agent, null for nothing
  sitemaps       what the file names, in its order
  host           the value of Host, null for none
  clean_url      the URL in canonical form and after Clean-param, null if it has none
  error          what is wrong with the question, only if something is
A bad line gets an error for an answer, and the next line is read.

Exit codes: 0 every line has its answer, 1 the questions could not be read or the
answers not written, 2 wrong usage.`

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
			in, err := openFileOrStdin(c.InOrStdin(), append(names, "-")[0], "questions") // no name: standard input
			if err != nil {
				return err
			}
			defer in.Close()
			signal.Reset(os.Interrupt, syscall.SIGTERM) // there is nothing to put in order first
			return evaluateBatch(in, env.Stdout, newBatchEvaluator(d, agent))
		},
	}
	c.Flags().StringVar(&dialect, "dialect", "google", "`NAME` of the dialect of questions that name none")
	c.Flags().StringVar(&agent, "agent", "*", "`NAME` of the agent of questions that name none")
	return c
}

// evaluateBatch answers each line of in by one of out. Answers wait for others
// only while there are more questions to read at once, so that one can also
// talk to it line by line.
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

// A batchInputLine is a line of what decorum robots batch reads.
type batchInputLine struct {
	Robots      *string
	RobotsBytes []byte `json:"robots_base64"`
	Agent       string
	URL         *string
	Dialect     string
	Extensions  bool
}

// A batchOutputLine is a line of what decorum robots batch writes. What is nil is
// written as null.
type batchOutputLine struct {
	Allowed    *bool    `json:"allowed"`
	Rule       *string  `json:"rule"`
	RuleLine   *int     `json:"line"`
	CrawlDelay *float64 `json:"crawl_delay_seconds"`
	Sitemaps   []string `json:"sitemaps"`
	MainMirror *string  `json:"host"`
	CleanURL   *string  `json:"clean_url"`
	Error      string   `json:"error,omitempty"`
}

// A batchEvaluator answers questions. Many are about the same files, so it keeps those
// it has read. It is not safe for concurrent use.
type batchEvaluator struct {
	defaultDialect robots.Dialect // of questions that name none
	defaultAgent   string         // of questions that name none
	parsedFiles    map[robotsParseInput]*parsedRobotsFile
	cachedBytes    int // about how many bytes the folders take
}

// maxEvaluatorCacheBytes is how much a clerk keeps, before it clears its desk.
const maxEvaluatorCacheBytes = 128 << 20

// A robotsParseInput is a file and how it is to be read.
type robotsParseInput struct {
	text       string
	dialect    robots.Dialect
	extensions bool
}

// A parsedRobotsFile is what a clerk knows of a file.
type parsedRobotsFile struct {
	file         *robots.File
	cleaner      *robots.URLCleaner
	mainMirror   *string // nil: the file names none
	sitemaps     []string
	rulesByAgent map[string]*robots.Rules // by agent
}

func newBatchEvaluator(d robots.Dialect, agent string) *batchEvaluator {
	return &batchEvaluator{defaultDialect: d, defaultAgent: agent, parsedFiles: make(map[robotsParseInput]*parsedRobotsFile)}
}

// evaluateLine answers the question of one line. What is wrong with it is said in
// the answer, beside all that can be answered.
func (c *batchEvaluator) evaluateLine(line []byte) batchOutputLine {
	if !utf8.Valid(line) { // or json would put other bytes in their place
		return batchOutputLine{Error: "not a question: the line is not UTF-8; give such a file as robots_base64"}
	}
	q := batchInputLine{Agent: c.defaultAgent, Dialect: c.defaultDialect.String(), Extensions: true}
	if err := json.Unmarshal(line, &q); err != nil {
		return batchOutputLine{Error: fmt.Sprintf("not a question: %v", err)}
	}
	s, err := q.parseInput()
	if err != nil {
		return batchOutputLine{Error: err.Error()}
	}
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

// evaluateURL adds what the rules say of a URL.
func (a *batchOutputLine) evaluateURL(url string, rules *robots.Rules, cleaner *robots.URLCleaner, d robots.Dialect) {
	u, err := decorum.ParseURL(url)
	switch {
	case err == nil:
		a.CleanURL = new(cleaner.CleanURL(u).String())
	case d != robots.GoogleOSS:
		a.Error = fmt.Sprintf("%q is not a URL that robots.txt speaks of: expected https://host/path", url)
		return
	}
	v := rules.CheckRawURL(url)
	a.Allowed = &v.Allowed
	if v.Rule != "" {
		a.Rule, a.RuleLine = &v.Rule, &v.Line
	}
}

// parseInput returns the file that a question is about.
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

// parsedFile returns what the clerk knows of a file; it reads it if it is new.
func (c *batchEvaluator) parsedFile(s robotsParseInput) *parsedRobotsFile {
	if f := c.parsedFiles[s]; f != nil {
		return f
	}
	c.reserveCache(5 * len(s.text)) // the text, its lines and its sitemaps
	file := robots.ParseOptions{Dialect: s.dialect, NoExtensions: !s.extensions}.Parse([]byte(s.text))
	f := &parsedRobotsFile{file: file, cleaner: file.URLCleaner(), sitemaps: []string{}, rulesByAgent: make(map[string]*robots.Rules)}
	if host, ok := file.MainMirror(); ok {
		f.mainMirror = &host
	}
	for _, u := range file.Sitemaps() {
		f.sitemaps = append(f.sitemaps, u.String())
	}
	c.parsedFiles[s] = f
	return f
}

// rulesForAgent returns what the file of f says to an agent.
func (c *batchEvaluator) rulesForAgent(f *parsedRobotsFile, s robotsParseInput, agent string) *robots.Rules {
	r := f.rulesByAgent[agent]
	if r == nil {
		c.reserveCache(10*len(s.text) + len(agent)) // compiled rules are larger than their text
		r = f.file.RulesFor(robots.AgentFromName(agent))
		f.rulesByAgent[agent] = r
	}
	return r
}

// reserveCache makes room for about so many bytes and what goes with them.
func (c *batchEvaluator) reserveCache(bytes int) {
	const overhead = 1 << 10
	if c.cachedBytes += bytes + overhead; c.cachedBytes > maxEvaluatorCacheBytes {
		clear(c.parsedFiles)
		c.cachedBytes = bytes + overhead
	}
}
