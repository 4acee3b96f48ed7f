"""How Chinese is read, and Chinese beside English: wetext's known mistakes are rows here (facts/bundled-voices.md)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stentor.text.normalise import Normalization, normalise

ROWS = {
    "￥99.80元": "九十九点八元",
    "￥3,000": "三千元",
    "价格¥3万": "价格三万元",
    "花了$4.5 million": "花了四百五十万美元",
    "订单123456789012": "订单一二三四五六七八九零一二",
    "跑步，5km。": "跑步，五公里。",
    "$0.5M给他": "五十万美元给他",
    "20块": "二十块",
    "100元/月": "一百元每月",
    "3.5亿美元": "三点五亿美元",
    "请拨打10086。": "请拨打幺零零八六。",
    "共10086个": "共一万零八十六个",
    "电话13800138000": "电话幺三八零零幺三八零零零",
    "2024年3月5日": "二零二四年三月五日",
    "3月5日": "三月五日",
    "2024-03-05发布": "二零二四年三月五日发布",
    "1990年代": "一九九零年代",
    "下午3:30": "下午三点三十分",
    "8:00-10:00开门": "八点到十点开门",
    "上午9:05": "上午九点零五分",
    "50%的人": "百分之五十的人",
    "涨了5-10%": "涨了百分之五到百分之十",
    "气温25℃": "气温二十五摄氏度",
    "时速100km/h": "时速每小时一百公里",
    "圆周率3.14": "圆周率三点一四",
    "有1,234,567人": "有一百二十三万四千五百六十七人",
    "温度-5度": "温度负五度",
    "比分3:2": "比分三比二",
    "1/2的人": "二分之一的人",
    "24/7服务": "二十四七服务",
    "第1名": "第一名",
    "第1-3章": "第一到三章",
    "2个苹果": "两个苹果",
    "第2次和2次": "第二次和两次",
    "2月2点": "二月两点",
    "5≥3吗": "五大于等于三吗",
    "从北京→上海": "从北京到上海",
    "２０２４年": "二零二四年",
    "版本v2.13.0": "版本v二点十三点零",
    "打开https://example.com/a": "打开example 点 com 斜杠 a",
    "邮箱a@b.com": "邮箱a 艾特 b 点 com",
    "IP是192.168.1.1。": "IP是一九二点一六八点一点一。",
    "5G网络": "五G网络",
}
MIXED = {
    "我用GPT-4o花了$3.50": "我用GPT四o花了三点五美元",
    "iPhone 15发布": "iPhone 十五发布",
    "他说 I have 3 apples 然后走了": "他说 I have three apples 然后走了",
    "你好。I have 3 apples.": "你好。I have three apples.",
    "你好, 3 apples": "你好, three apples",
    "R&D部门": "R and D部门",
    "说：“5个”\\n": "说：“五个”\\n",
}


@pytest.mark.parametrize(("written", "spoken"), (ROWS | MIXED).items(), ids=(ROWS | MIXED).keys())
def test_chinese_is_read(written: str, spoken: str) -> None:
    assert normalise(written) == spoken


def test_the_asked_language_decides_where_the_text_does_not() -> None:
    assert normalise("3.14", "zh") == "三点一四"
    assert normalise("3.14", "Chinese") == "三点一四"
    assert normalise("3.14") == "three point one four"


def test_english_asked_for_is_english_beside_chinese() -> None:
    assert normalise("苹果 means 3 apples", "en") == "苹果 means three apples"


def test_chinese_switched_off_leaves_chinese_numbers_and_reads_english_ones() -> None:
    assert normalise("我有3个。I have 3.", None, Normalization(chinese=False)) == "我有3个。I have three."


def test_a_number_that_wetext_does_not_know_is_read_digit_by_digit() -> None:
    assert normalise("编号" + "12" * 30 + "号") == "编号" + "一二" * 30 + "号"


def test_wetext_is_imported_by_the_first_chinese_number_only() -> None:
    program = (
        "import sys; from stentor.text.normalise import normalise; "
        "normalise('你好。3 apples'); assert 'wetext' not in sys.modules; "
        "normalise('你有3个'); assert 'wetext' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
