package page

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/decorum-crawler/decorum/crawler/daemon/api"
)

// maxFormBytes is the limit of a form, in bytes. For longer lists of URLs there is the API, which
// has no limit.
const maxFormBytes = 4 << 20

// A formResult is the outcome of a form: a page to redirect to, or the form once more with what is
// wrong in it.
type formResult struct {
	redirectTo      string      // the path of the next page
	message         string      // shown on the next page, once; empty: none
	redisplayedPage *pageResult // the form again, instead of a redirect; nil: redirect
}

// formHandler returns the handler of a form. It runs submit for callers with the role operate, and
// redirects to a page that shows the outcome.
func (s *webUI) formHandler(submit func(*http.Request) (formResult, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !api.CallerFromContext(r.Context()).Role.Allows(api.RoleOperate) {
			s.renderPage(w, r, problemView(forbiddenProblem("this login can only read")))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
		if err := r.ParseForm(); err != nil {
			s.renderPage(w, r, problemView(unreadableFormProblem(err)))
			return
		}
		// Show the form again, the problem, or the next page.
		d, err := submit(r)
		switch {
		case d.redisplayedPage != nil:
			s.renderPage(w, r, *d.redisplayedPage)
			return
		case err != nil: // as a page with the status of err, which the audit records
			v := problemView(err)
			v.data = problemData{v.title, problemOf(err).Error(), cmp.Or(d.redirectTo, "/")}
			s.renderPage(w, r, v)
			return
		case d.message != "":
			setFlashMessage(w, r, d.message)
		}
		http.Redirect(w, r, d.redirectTo, http.StatusSeeOther)
	})
}

// actionMessages holds the message after each action on a project.
var actionMessages = map[api.ProjectAction]string{
	api.ActionStart: "%s is started", api.ActionPause: "%s pauses after the visits in flight",
	api.ActionResume: "%s continues", api.ActionStop: "%s stops after the visits in flight",
}

func (s *webUI) controlProject(r *http.Request) (formResult, error) {
	name, action := r.PathValue("project"), api.ProjectAction(r.PathValue("action"))
	if actionMessages[action] == "" {
		return formResult{}, api.NotFound("unknown action %q", action)
	}
	return formResult{redirectTo: api.LocalRedirectPath(r.PostFormValue("back")),
		message: fmt.Sprintf(actionMessages[action], name)}, s.daemon.ControlProject(r.Context(), name, action)
}

func (s *webUI) reloadProjects(r *http.Request) (formResult, error) {
	changes, err := s.daemon.ReloadProjects(r.Context())
	var messages []string
	for _, c := range changes {
		if c.Outcome != "none" {
			messages = append(messages, c.Project+": "+strings.TrimSpace(c.Outcome+" "+c.Error))
		}
	}
	if len(messages) == 0 {
		messages = []string{"nothing changed"}
	}
	return formResult{redirectTo: "/", message: "Project files were read again: " + strings.Join(messages, "; ")}, err
}

// deleteProject deletes a project if the form repeats its name.
func (s *webUI) deleteProject(r *http.Request) (formResult, error) {
	name := r.PathValue("project")
	if r.PostFormValue("name") != name {
		return formResult{redirectTo: "/projects/" + url.PathEscape(name) + "/file"},
			api.InvalidInput("not deleted: type %q to confirm", name)
	}
	return formResult{redirectTo: "/", message: name + " is deleted; its file and its state are kept with the " +
		"deleted projects"}, s.daemon.DeleteProject(r.Context(), name)
}

// setBrake sets the brake that the form describes. The daemon checks the host and the reason.
func (s *webUI) setBrake(r *http.Request) (formResult, error) {
	back := api.LocalRedirectPath(r.PostFormValue("back"))
	b := api.Brake{Host: strings.TrimSpace(r.PostFormValue("host")), WithSubdomains: r.PostFormValue("domain") != "",
		Stop: r.PostFormValue("kind") != "slow", Reason: strings.TrimSpace(r.PostFormValue("reason")),
		By: api.CallerFromContext(r.Context()).Name, Since: time.Now()}
	if !b.Stop {
		delay, err := parseDuration(r.PostFormValue("delay"))
		if err != nil || delay <= 0 {
			return formResult{redirectTo: back},
				api.InvalidInput("the pause between visits must be a duration, as in 30s")
		}
		b.Delay = api.Milliseconds(delay)
	}
	if text := r.PostFormValue("for"); text != "" {
		duration, err := parseDuration(text)
		if err != nil || duration <= 0 {
			return formResult{redirectTo: back},
				api.InvalidInput("the time that the brake lasts must be a duration, as in 2h or 7d")
		}
		b.Expires = b.Since.Add(duration)
	}
	return formResult{redirectTo: back, message: "The brake is on: " + b.Host}, s.daemon.SetBrake(r.Context(), b)
}

func (s *webUI) liftBrake(r *http.Request) (formResult, error) {
	host := r.PostFormValue("host")
	return formResult{redirectTo: api.LocalRedirectPath(r.PostFormValue("back")), message: "The brake is off: " + host},
		s.daemon.LiftBrake(r.Context(), host)
}

var daysPattern = regexp.MustCompile(`^(\d{1,4})d$`)

// parseDuration parses a duration in the syntax of project files: Go's, and whole days as 7d.
func parseDuration(text string) (time.Duration, error) {
	text = strings.TrimSpace(text)
	if m := daysPattern.FindStringSubmatch(text); m != nil {
		d, err := time.ParseDuration(m[1] + "h")
		return 24 * d, err
	}
	return time.ParseDuration(text)
}

// An addURLsForm is the view of the form that adds URLs.
type addURLsForm struct {
	Text    string             // of the field, one URL on each line
	Result  *api.AddURLsResult // of the submitted URLs; nil: none were submitted
	Problem string             // why not all URLs were added
}

func emptyAddURLsForm(*http.Request, *api.Project) (any, error) { return addURLsForm{}, nil }

// addURLs adds the URLs of a form, and shows the form again with the result.
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
	// Show what was added, and keep the text if some lines need a correction.
	v, l, err := s.loadProjectView(r, "urls")
	if err != nil {
		return formResult{}, err
	}
	form := addURLsForm{Result: result}
	if addErr != nil {
		form.Problem, v.status = addErr.Error(), problemOf(addErr).Status
	}
	if addErr != nil || result.InvalidLines > 0 || result.Refused > 0 {
		form.Text = text
	}
	l.Content = form
	return formResult{redisplayedPage: &v}, nil
}

// nonBlankLines yields the lines of a text that are not blank, without surrounding space.
func nonBlankLines(text string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line, nil) {
				return
			}
		}
	}
}
