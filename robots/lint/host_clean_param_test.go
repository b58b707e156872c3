package lint

import (
	"strings"
	"testing"

	"github.com/decorum-crawler/decorum"
	"github.com/decorum-crawler/decorum/robots"
	"github.com/decorum-crawler/decorum/robots/internal/syntax"
)

// TestLintKnowsWhatIsRead proves that lint reports a Host or Clean-param value if and only if the parser
// ignores it.
func TestLintKnowsWhatIsRead(t *testing.T) {
	for _, v := range []string{"myhost.ru", "https://myhost.ru", "http://myhost.ru", "myhost.ru:8080",
		"myhost.ru:100000", "my_host.ru",
		".my.ru", "my.ru.", "my..ru", "my.ru/", "213.180.194.129", "a.ru,b.ru", "a.ru b.ru", "-a.ru", "a-.ru",
		"1host.ru", "a.ru:", "a.ru:0", "пример.рф", "xn--e1afmkfd.xn--p1ai", "localhost"} {
		_, ok := robots.Parse([]byte("Host: "+v+"\n"), robots.Yandex).MainMirror()
		if problem := hostDirectiveProblem(v); ok != (problem == "") {
			t.Errorf("Host: %s is read: %v; lint says %q", v, ok, problem)
		}
	}
	page, err := decorum.ParseURL("https://example.com/f/x" + strings.Repeat("a", 20) + "?s=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"s", "s /", "s /f", "s /f*", "s&t /f", "s *", "s /a?b", "s f", "s /f x", "&s /", "s& /",
		"s /f$", "s /f" + strings.Repeat("*a", syntax.MaxCleanParamWildcards),
		"s /f" + strings.Repeat("*a", syntax.MaxCleanParamWildcards+1), "s /f" + strings.Repeat("*", 495),
		"s /f" + strings.Repeat("*", 496)} {
		read := robots.Parse([]byte("Clean-param: "+v+"\n"), robots.Yandex).URLCleaner().CleanURL(page) != page
		if problem := cleanParamProblem(v); read != (problem == "") && !strings.HasPrefix(v, "s /a") {
			t.Errorf("Clean-param: %.40s is read: %v; lint says %q", v, read, problem)
		}
	}
}
