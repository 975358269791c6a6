package insist;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, strings, numbers, booleans and null: the JDK has none of its own. */
public final class Json {
    private static final int DEPTH_MAX = 256;
    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Throws IllegalArgumentException, with the place, when it is not JSON. */
    public static Object read(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        json.blanks();
        if (json.at < text.length())
            throw json.wrong("something after the end");
        return value;
    }

    public static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value == null || value instanceof Boolean) {
            out.append(value);
        } else if (value instanceof Double d && (d.isNaN() || d.isInfinite())) {
            throw new IllegalArgumentException("JSON has no " + d);
        } else if (value instanceof Number) {
            out.append(value);
        } else if (value instanceof Map<?, ?> map) {
            char before = '{';
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(before);
                string(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                before = ',';
            }
            out.append(before == '{' ? "{}" : "}");
        } else if (value instanceof Iterable<?> list) {
            char before = '[';
            for (Object one : list) {
                out.append(before);
                write(one, out);
                before = ',';
            }
            out.append(before == '[' ? "[]" : "]");
        } else {
            string(value.toString(), out);
        }
    }

    private static void string(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\')
                out.append('\\').append(c);
            else if (c < ' ')
                out.append(String.format("\\u%04x", (int) c));
            else
                out.append(c);
        }
        out.append('"');
    }

    private Object value(int depth) {
        if (depth > DEPTH_MAX)
            throw wrong("too deep");
        blanks();
        char c = at < text.length() ? text.charAt(at) : 0;
        return switch (c) {
            case '{' -> object(depth);
            case '[' -> array(depth);
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> map = new LinkedHashMap<>();
        at++;
        if (next('}'))
            return map;
        do {
            blanks();
            String name = string();
            if (!next(':'))
                throw wrong("a colon is missing");
            map.put(name, value(depth + 1));
        } while (next(','));
        if (!next('}'))
            throw wrong("an object does not end");
        return map;
    }

    private List<Object> array(int depth) {
        List<Object> list = new ArrayList<>();
        at++;
        if (next(']'))
            return list;
        do
            list.add(value(depth + 1));
        while (next(','));
        if (!next(']'))
            throw wrong("an array does not end");
        return list;
    }

    private String string() {
        if (at >= text.length() || text.charAt(at) != '"')
            throw wrong("a string is missing");
        StringBuilder out = new StringBuilder();
        for (at++; at < text.length(); at++) {
            char c = text.charAt(at);
            if (c == '"') {
                at++;
                return out.toString();
            }
            out.append(c == '\\' ? escaped() : c);
        }
        throw wrong("a string does not end");
    }

    private char escaped() {
        char c = ++at < text.length() ? text.charAt(at) : 0;
        switch (c) {
        case '"', '\\', '/':
            return c;
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        case 'u':
            if (at + 4 < text.length() && text.substring(at + 1, at + 5).matches("[0-9A-Fa-f]{4}")) {
                at += 4;
                return (char) Integer.parseInt(text.substring(at - 3, at + 1), 16);
            }
        }
        throw wrong("an escape is not one");
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at))
            throw wrong("no value");
        at += word.length();
        return value;
    }

    private Number number() {
        int from = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0)
            at++;
        String digits = text.substring(from, at);
        if (!digits.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?"))
            throw wrong("no value");
        if (digits.matches("-?[0-9]{1,18}"))
            return Long.valueOf(digits);
        return new BigDecimal(digits);
    }

    private boolean next(char wanted) {
        blanks();
        boolean there = at < text.length() && text.charAt(at) == wanted;
        at += there ? 1 : 0;
        return there;
    }

    private void blanks() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0)
            at++;
    }

    private IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException(what + " at character " + (at + 1));
    }
}
