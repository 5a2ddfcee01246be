-- Strings, tables, closures and objects in Lua.  Every block of a Lua program is one malloc, realloc or free.
--
--   lua5.4 lua.lua ROUNDS     prints a checksum of the results
local rounds = tonumber(arg[1])

local random_state = 12345
local function random_below(n)
  random_state = (random_state * 1103515245 + 12345) & 0x7fffffff
  return (random_state >> 8) % n
end

local checksum = 0
local function check(value)
  checksum = (checksum * 31 + value) & 0xffffffffffff
end
local function check_string(s)
  local h = #s
  for i = 1, #s, 7 do h = (h * 33 + s:byte(i)) & 0xffffffff end
  check(h)
end

-- A text of random words, and how often each of them is in it.
local function words()
  local syllables = { "ka", "lo", "mi", "ter", "un", "es", "po", "ri", "dan", "vo", "sel", "gra" }
  local text = {}
  for _ = 1, 30000 do
    local word = ""
    for _ = 1, 1 + random_below(4) do word = word .. syllables[1 + random_below(#syllables)] end
    text[#text + 1] = word
  end
  text = table.concat(text, " ")
  local counts, distinct = {}, {}
  for word in text:gmatch("%a+") do
    if not counts[word] then distinct[#distinct + 1] = word end
    counts[word] = (counts[word] or 0) + 1
  end
  table.sort(distinct, function(a, b) return counts[a] > counts[b] or (counts[a] == counts[b] and a < b) end)
  check(#distinct)
  for i = 1, 50 do check_string(distinct[i] .. counts[distinct[i]]) end
  check_string(text:gsub("%a+", function(word) return word:reverse():upper() end))
end

-- A nested structure, written as text and read back.
local function encode(value, out)
  if type(value) ~= "table" then
    out[#out + 1] = type(value) == "string" and '"' .. value .. '"' or tostring(value)
  elseif #value > 0 then
    out[#out + 1] = "["
    for i, item in ipairs(value) do
      if i > 1 then out[#out + 1] = "," end
      encode(item, out)
    end
    out[#out + 1] = "]"
  else
    out[#out + 1] = "{"
    local keys = {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys)
    for i, key in ipairs(keys) do
      out[#out + 1] = (i > 1 and "," or "") .. '"' .. key .. '":'
      encode(value[key], out)
    end
    out[#out + 1] = "}"
  end
end

local function decode(text, at)
  local first = text:sub(at, at)
  if first == '"' then
    local _, last, content = text:find('"([^"]*)"', at)
    return content, last + 1
  elseif first == "[" then
    local list = {}
    repeat
      list[#list + 1], at = decode(text, at + 1)
    until text:sub(at, at) == "]"
    return list, at + 1
  elseif first == "{" then
    local object, key = {}, nil
    repeat
      key, at = decode(text, at + 1)
      object[key], at = decode(text, at + 1)
    until text:sub(at, at) == "}"
    return object, at + 1
  end
  local _, last, number = text:find("(%-?%d+)", at)
  return tonumber(number), last + 1
end

local function structure(depth)
  if depth == 0 then return random_below(2) == 0 and random_below(100000) or "text " .. random_below(100000) end
  local result = {}
  for i = 1, 6 do
    local key = depth % 2 == 0 and i or "key" .. i
    result[key] = structure(depth - 1)
  end
  return result
end

local function texts()
  local out = {}
  encode(structure(6), out)
  local first = table.concat(out)
  out = {}
  encode((decode(first, 1)), out)
  local second = table.concat(out)
  if first ~= second then
    print("FAILED: a structure is not what was written")
    os.exit(1)
  end
  check_string(first)
end

-- Objects with methods and closures, in a search tree; half of them are removed again.
local Node = {}
Node.__index = Node
function Node.new(key)
  local visits = 0
  local function visit()
    visits = visits + 1
    return visits
  end
  return setmetatable({ key = key, label = "node " .. key, visit = visit }, Node)
end
function Node:insert(key)
  self.visit()
  local side = key < self.key and "left" or "right"
  if self[side] then self[side]:insert(key) else self[side] = Node.new(key) end
end
function Node:sum()
  return #self.label + self.visit() + (self.left and self.left:sum() or 0) + (self.right and self.right:sum() or 0)
end

local function objects()
  local tree = Node.new(500000)
  for _ = 1, 30000 do tree:insert(random_below(1000000)) end
  check(tree:sum())
  tree.left = nil
  check(tree:sum())
end

-- A queue of small tables, and arrays that grow.
local function queues()
  local queue, head = {}, 1
  for i = 1, 150000 do
    queue[#queue + 1] = { i, "job " .. i % 1000, { priority = random_below(10) } }
    if i % 3 ~= 0 then
      local job = queue[head]
      check(job[1] + job[3].priority)
      queue[head] = false
      head = head + 1
    end
  end
end

for _ = 1, rounds do
  words()
  texts()
  objects()
  queues()
end
print(string.format("lua %d: %012x", rounds, checksum))
