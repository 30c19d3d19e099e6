"""What may be given to the options of the commands here, for argparse."""

import argparse

from cell import parse_bytes


def list_of(parse):
    def parsed(text):
        try:
            return [parse(each) for each in text.split(",")]
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    return parsed


def size(text):
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def one_of(names):
    def parsed(text):
        if text not in names:
            raise ValueError(f"'{text}' is none of {', '.join(names)}")
        return text
    return parsed


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError(f"{text} is not positive")
    return value


def count(text):
    value = int(text)
    if value < 0:
        raise ValueError(f"{text} is negative")
    return value
