-- import(clock, {kind, origin, host, n, …}…) → sum, one character each: takes over
-- what another store held. n is how many arguments follow. A clock (h) is hold,
-- whether that is dormant, due, gap, slots, strikes, memo; a URL (u) is its state
-- (q, r or p), lane, rank, at, print, record, and is passed by where it is seen;
-- others (s) are fingerprints that were seen.
local function takeClock(o, i)
  set(o, 'e', moment(ARGV[i]))
  set(o, 'D', tonumber(ARGV[i + 1]))
  setClock(host(o.is.H), i + 2)
end

local function takeURL(o, i)
  local state, lane, at, print, record = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 3], ARGV[i + 4], ARGV[i + 5]
  if print ~= '' and not seeNew(o, print) then return end
  if state == 'r' then
    rest(o, print, moment(at), record)
  elseif state == 'p' then
    park(o, record)
  elseif at ~= '' then
    putOff(o, lane, moment(at), record)
  else
    put(o, lane, tonumber(ARGV[i + 2]), record)
  end
end

local i, done = 2, {}
while ARGV[i] do
  local kind, o, n = ARGV[i], meet(ARGV[i + 1], ARGV[i + 2]), tonumber(ARGV[i + 3])
  i = i + 4
  if kind == 'h' then
    takeClock(o, i)
  elseif kind == 'u' then
    takeURL(o, i)
  else
    for k = i, i + n - 1 do seeNew(o, ARGV[k]) end
  end
  touch(o)
  done[#done + 1] = '1'
  i = i + n
end
return {finish(), table.concat(done)}
