package page

import (
	"iter"
	"net/http"
	"strings"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// An addURLsForm is the form that URLs are added by.
type addURLsForm struct {
	Text    string
	Result  *api.AddURLsResult // what became of them
	Problem string             // why not all of them were taken
}

func emptyAddURLsForm(*http.Request, *api.Project) (any, error) { return addURLsForm{}, nil }

func (s *webUI) addURLs(r *http.Request) (formResult, error) {
	text := r.PostFormValue("urls")
	i, err := s.daemon.Inspector(r.Context(), r.PathValue("project"))
	if err != nil {
		return formResult{}, err
	}
	result, addErr := i.AddURLs(r.Context(), nonBlankLines(text))
	if addErr != nil && result == nil {
		return formResult{}, addErr
	}
	v, l, err := s.loadProjectView(r, "urls")
	if err != nil {
		return formResult{}, err
	}
	form := addURLsForm{Result: result}
	if addErr != nil {
		form.Problem, v.status = addErr.Error(), problemOf(addErr).Status
	}
	if addErr != nil || result.InvalidLines > 0 || result.Refused > 0 {
		form.Text = text // to be put right
	}
	l.Content = form
	return formResult{redisplayedPage: &v}, nil
}

// nonBlankLines are those of a text, without those that are blank.
func nonBlankLines(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line, nil) {
				return
			}
		}
	}
}
